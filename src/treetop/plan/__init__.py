"""Plans: every decision made before private data is read, with its accuracy and its cost."""
