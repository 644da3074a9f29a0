"""The composition root: the whole service in one process, its data folder and its configuration."""
