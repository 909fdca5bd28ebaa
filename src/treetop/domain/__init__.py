"""The words of the domain, all public: hierarchies, spines, units and relations."""
