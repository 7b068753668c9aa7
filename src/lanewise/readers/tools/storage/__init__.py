"""Tools that read and write drives, files and objects."""
