"""What cards of group sizes say, and how such a plan is made again from its card."""
