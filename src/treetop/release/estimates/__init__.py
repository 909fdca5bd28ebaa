"""Estimates from all measurements of a release: post-processing of noisy values, so it costs no privacy."""
