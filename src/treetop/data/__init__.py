"""Getting tables in: files and anything that speaks Arrow."""
