"""Measure, predict and compose the data paths that feed GPUs."""
