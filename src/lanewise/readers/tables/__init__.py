"""Tables of no tool in particular: cells between bars, and sizes with their rates."""
