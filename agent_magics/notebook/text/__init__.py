"""How things read: plain text, Markdown and tables, as wide as the place has room for."""
