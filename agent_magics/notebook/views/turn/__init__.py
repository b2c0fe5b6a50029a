"""A turn while it runs: its state for pages, and the view."""
