"""What each repair invents and what it loses, on three real tables of trips."""
