"""What is said of degrees on their cards, and the way back from a card to its plan."""
