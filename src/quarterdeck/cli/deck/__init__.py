"""The commands around the hub: serving it, and talking to it from a terminal."""
