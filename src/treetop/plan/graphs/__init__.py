"""Plans for graphs: their section of a plan file."""
