"""The experiments of Ko, Ziani and Fioretto on dividing a privacy loss over levels again: their figures 2 to 7."""
