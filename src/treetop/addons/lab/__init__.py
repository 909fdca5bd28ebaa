"""Made-up data and baselines, to measure how accurate and how fast a release is."""
