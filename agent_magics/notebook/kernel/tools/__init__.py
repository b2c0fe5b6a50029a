"""Tools that see the kernel and the notebook's folder."""
