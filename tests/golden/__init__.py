"""Releases as they were, digest by digest."""
