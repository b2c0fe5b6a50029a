"""The ledger as rows, as lines of text and Markdown, and as the explorer."""
