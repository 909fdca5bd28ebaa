"""Plans for group sizes: units, mechanisms and plan files."""
