"""Tests of group sizes."""
