"""Which session this notebook has, how its agent is built, and its settings."""
