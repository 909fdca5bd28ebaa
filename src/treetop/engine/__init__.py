"""Where work is done: threads, processes, clusters; and the private folder in which they hand it on."""
