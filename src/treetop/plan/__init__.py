"""Plans: all that is decided before private data is read, with its accuracy and its cost."""
