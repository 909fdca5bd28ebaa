"""Data that are made up, and yardsticks, to see how good and how fast a release is."""
