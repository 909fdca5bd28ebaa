"""Releases of group sizes, and what is derived from them."""
