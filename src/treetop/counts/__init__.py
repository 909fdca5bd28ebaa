"""From private tables to counts: codes become leaves, contributions are bounded."""
