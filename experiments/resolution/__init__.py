"""What a resolved release names, invents and leaves open, beside a full one: three real tables and two made-up ones."""
