"""Quarterdeck: a control deck for Claude Code."""

__version__ = "0.1.0"
