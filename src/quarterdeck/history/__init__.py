"""History: search, export, import and retention over the journal."""
