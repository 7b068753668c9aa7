"""Collectives of several GPUs: what NCCL or RCCL chooses, and how long it takes over a described topology."""
