"""Values and protocols that every other room speaks in; this room imports no other."""
