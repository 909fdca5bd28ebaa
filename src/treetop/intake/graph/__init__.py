"""Graphs as they are read: people, edges, cleaning and projection, by public rules."""
