"""What is loaded of an open session, what runs in it, and the one writer."""
