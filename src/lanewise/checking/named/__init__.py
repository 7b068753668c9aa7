"""What a part is by its name alone: GPUs, CPUs, and links that rows name."""
