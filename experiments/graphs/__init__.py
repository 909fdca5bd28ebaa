"""What each neighbour relation of a graph costs: friendships between groups, degrees, questions and rebalancing."""
