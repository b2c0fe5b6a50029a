"""What a cell shows while a turn runs in it and after."""
