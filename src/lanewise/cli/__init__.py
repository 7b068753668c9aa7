"""The command line: one short file a verb, each a thin wrap around the function of that name in lanewise.api."""
