"""What to do: rank layouts, place devices on hosts and ports, pin network cards to GPUs."""
