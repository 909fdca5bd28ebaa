"""Publish a release: check, charge the ledger, measure, write the folder, record."""
