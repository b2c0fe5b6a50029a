"""Where sessions and memories are stored: append-only, one writer a session.

`backends` maps the URL of a store to what keeps it, and is all that a notebook needs to import.
`sqlite` keeps a ledger in one file and is the only place that knows SQLite; `in_memory` keeps one
as long as the process lives. Neither knows the other: what both need (the order of lists, the
form of events, the words that memories are found by) stands in this folder.

Importing `backends` loads the standard library and msgspec only; SQLAlchemy comes with the first
store that is opened.
"""
