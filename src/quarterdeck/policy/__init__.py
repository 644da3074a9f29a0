"""What may be done without asking: pure decisions, each with its reasons."""
