"""What runs: agents, sessions, turns."""
