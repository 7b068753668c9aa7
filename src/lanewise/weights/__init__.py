"""The weights of a model on their way from storage to GPUs: how long a load takes, and what limits it."""
