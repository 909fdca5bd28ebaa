"""Tests of the noise."""
