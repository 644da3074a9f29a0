"""Our own words: what every other package may speak of. Imports nothing of ours."""
