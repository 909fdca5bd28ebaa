"""Small things that every layer uses and that know nothing of privacy: exact numbers, frozen maps, kernels, sorting."""
