"""The accounting, and audits that would catch a privacy bug."""
