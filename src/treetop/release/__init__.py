"""Releases: the public result of one run, with tables, queries, intervals, estimates and the folder."""
