"""Treetop beside public tools: same table, same epsilon and delta, each tool in an environment of its own."""
