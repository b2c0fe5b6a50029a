"""Coroutines across threads: a background loop and the main thread that it asks; no session."""
