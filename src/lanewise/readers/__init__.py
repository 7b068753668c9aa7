"""Results of other tools, and figures typed in, read as observations; one module a tool, `kinds` recognises them."""
