"""The command line: one short file a verb, each a thin wrap around its function in lanewise.api."""
