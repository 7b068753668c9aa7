"""Many machines checked together: rounds of tests, what each node does in them, one verdict a node."""
