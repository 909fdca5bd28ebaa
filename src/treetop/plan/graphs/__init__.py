"""Plans for what is released of a graph beside its edges: the degrees of its people."""
