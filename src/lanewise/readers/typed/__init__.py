"""Figures that somebody typed in, `lanewise-rows: 1`."""
