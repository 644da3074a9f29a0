"""The terminal: what commands print, and what people type."""
