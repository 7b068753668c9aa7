"""The options of the verbs, each defined once: name, default and help, for the command line and for Python."""
