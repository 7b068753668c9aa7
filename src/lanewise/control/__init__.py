"""Control channels: how two Lanewise processes on a network find, greet, trust and talk to each other."""
