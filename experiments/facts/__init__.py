"""What public facts buy: the same table released with and without them."""
