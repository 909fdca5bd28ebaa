"""The use case: check, charge, measure, write, record; and plans that can be run."""
