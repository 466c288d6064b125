"""The Model Context Protocol, both halves: a pure core (bytes in, events out) and thin shells around it."""
