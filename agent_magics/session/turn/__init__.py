"""One turn, from the prompt to its outcome: its start, its stages, tools and their approval."""
