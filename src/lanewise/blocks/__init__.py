"""Many pieces of memory moved at once, as KV caches are: how long it takes, and whether path or software limits it."""
