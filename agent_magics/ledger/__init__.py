"""Where the ledger lives: stores, leases, migrations."""
