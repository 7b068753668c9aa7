"""Engines: what carries batches of work, in this process, in local processes, or on Ray."""
