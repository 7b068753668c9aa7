"""Tools that measure between two hosts, and of PCIe cards that are no GPUs."""
