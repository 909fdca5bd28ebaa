"""Pages for the public: languages, their words, and the HTML that sites and maps share."""
