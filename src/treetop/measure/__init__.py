"""The engine: one level, one subtree, and the local runner."""
