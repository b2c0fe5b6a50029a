"""What the model sees, as pure functions of the ledger."""
