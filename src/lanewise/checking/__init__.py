"""Whether paths deliver what they should: expected against measured, likely causes, next steps."""
