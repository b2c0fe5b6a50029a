"""A ledger in one SQLite file; the only folder that imports sqlite3, SQLAlchemy and Alembic.

From outside import `backend` (light: it loads the rest at first use), `store.SqlStore`,
`memories.SqlMemoryStore` and `archive.Archive`. The floors, from below: where the file is and its
locks (`files`, `lock_files`, `locks`, `errors`), the tables and the connection (`schema`,
`connection`, `opening`), statements (`reading`, `writing`, `restoring`, `leases`), the thread
that runs them (`worker`, `database`), and what is public.
"""
