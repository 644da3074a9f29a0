"""Permission decisions: pure functions that return a verdict with its reasons."""
