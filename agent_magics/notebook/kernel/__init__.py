"""The kernel that the agent lives in: its host and threads, its values, its tools, approval."""
