"""From older schemas to ours; imported only where a file's version differs."""
