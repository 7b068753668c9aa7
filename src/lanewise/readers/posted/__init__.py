"""What is posted with figures: settings, logs, lists of GPUs and links, as statements."""
