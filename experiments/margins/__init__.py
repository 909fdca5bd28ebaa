"""What margins buy: errors of totals and of pairs, with and without them, on made-up and real tables."""
