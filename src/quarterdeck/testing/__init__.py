"""For tests of programs that drive Claude Code: a scripted model, a fake CLI, the real ones."""
