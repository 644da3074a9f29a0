"""The ways in, each for itself: siblings that never import each other."""
