"""Slots of a session: listed, changed, and which checkpoint holds in each."""
