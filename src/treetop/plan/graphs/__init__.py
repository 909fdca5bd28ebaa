"""Plans for the degrees of a graph."""
