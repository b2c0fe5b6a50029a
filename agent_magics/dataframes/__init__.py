"""The ledger as pandas data frames, and drawn."""
