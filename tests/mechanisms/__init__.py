"""Tests of the mechanisms that Treetop compares."""
