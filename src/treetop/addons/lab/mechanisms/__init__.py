"""Mechanisms: the ways to publish counts that Treetop compares, side by side behind one interface."""
