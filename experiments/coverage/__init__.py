"""How often noise intervals hold the truth, on tables whose truth is known."""
