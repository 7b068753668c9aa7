"""The network probe: two processes or hosts, data over TCP or verbs, one side asks and the other answers."""
