"""Drivers: how the director reads a fabric and changes what is attached to which server."""
