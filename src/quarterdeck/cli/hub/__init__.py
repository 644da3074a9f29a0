"""What the hub's commands do: one module for each subject."""
