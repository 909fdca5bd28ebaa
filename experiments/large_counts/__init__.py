"""Whether the largest counts of sparse tables keep their measurements, with margins and without."""
