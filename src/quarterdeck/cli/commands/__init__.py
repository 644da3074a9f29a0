"""Declarations of all commands: names, options, help texts. `base` has what they share."""
