"""The slots as tabs: the view, and what can be done in it."""
