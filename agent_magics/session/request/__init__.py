"""One request: made, sent, read, counted."""
