"""Tools that time collectives, and tables of bus bandwidth by message size."""
