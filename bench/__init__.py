"""Benchmarks, side by side with the peers. Run them with `make bench`."""
