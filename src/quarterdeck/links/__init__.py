"""Byte pipes to a CLI: subprocess, WebSocket (accept and dial), memory, recording."""
