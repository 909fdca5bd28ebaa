"""Groups as they are read: public lists, and the sizes of private groups."""
