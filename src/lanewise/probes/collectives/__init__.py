"""Collectives of NCCL on this machine's GPUs, in one process: timed, and their data compared."""
