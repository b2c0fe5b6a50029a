"""Models, each behind the same port."""
