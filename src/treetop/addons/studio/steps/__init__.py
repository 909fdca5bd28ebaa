"""The steps of the studio: each shows a page, and handles its form."""
