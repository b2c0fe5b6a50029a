"""What the magics do, one file a command."""
