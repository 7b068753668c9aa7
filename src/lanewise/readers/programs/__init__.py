"""Lines of a program of one's own, whose size, time and rate agree."""
