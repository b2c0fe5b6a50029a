"""What lasts: a session's facts, and memories across sessions: found, shown, extracted."""
