"""The studies behind docs/results, each run as `python -m experiments.NAME [--quick] [--runs N]`.

What they share is in `kit`. A study has `measure` (what is run, with keys of its own), `figures`, `page` (numbers and
tables) with the words in `page.md`, and `__main__`, which puts them together.
"""
