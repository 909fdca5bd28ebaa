"""What all studies share: the tables they read, their runs, the command, and how tables, figures and pages are made."""
