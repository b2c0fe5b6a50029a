"""Answers of several slots side by side: what is compared, how, and the view."""
