"""Studies on real tables: each is one command that measures, and writes the tables and plots of a page in `docs`."""
