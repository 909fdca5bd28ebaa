"""Errors that are expected from public sizes alone, beside those that were measured; and what advice gains."""
