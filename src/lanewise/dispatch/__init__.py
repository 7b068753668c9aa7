"""Query dispatch: a Frontend sends the queries of a load generator to Accelerator nodes."""
