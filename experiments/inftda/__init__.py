"""The experiments of the InfTDA paper (Boninsegna and Silvestri, PETS 2025, section 5) again: its figures 3 to 6."""
