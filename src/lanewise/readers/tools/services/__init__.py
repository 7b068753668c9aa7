"""Load generators of services, and logs of what serves models."""
