"""The studies behind docs/results, each run as `python -m experiments.NAME [--quick] [--runs N]`.

`python -m experiments` runs all that this version has not finished. A page says which version measured it, when, and
under which load; a test fails where that is older than the code by more than a minor version.

What they share is in `kit`. A study has `measure` (what is run, with keys of its own), `figures`, `page` (numbers and
tables) with the words in `page.md`, and `__main__`, which puts them together.
"""
