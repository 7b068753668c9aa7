"""Measured machines: their wiring, what was measured on them, and how well the performance model predicts it."""
