"""Checking a release folder: everything that its card states is computed again."""
