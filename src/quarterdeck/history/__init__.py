"""What was said and done: search, export, import and retention over the journal."""
