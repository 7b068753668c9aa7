"""What the words around a figure say: quantities, devices, GPUs, paths and clauses."""
