"""What exists: systems of devices and links, read from a description, written, composed."""
