"""Tools that copy between GPUs and host memory, or measure a GPU's own memory; one module a tool."""
