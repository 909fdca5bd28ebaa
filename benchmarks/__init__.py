"""Side-by-side measurements, each printing a ratio taken in one run."""
