"""The library: drive one agent directly."""
