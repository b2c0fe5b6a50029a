"""Live views of a session: their state, the widgets that carry it to pages, and what pages do."""
