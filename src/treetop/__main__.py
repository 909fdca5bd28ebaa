"""`python -m treetop` is the command `treetop`."""

from treetop.cli import main

if __name__ == "__main__":
    main()
