"""The driver of emulated fabrics: servers are QEMU machines, devices are plugged into emulated PCIe switches."""
