"""The memory over HTTP: a program around `ragmcp`'s endpoint. Imported by `ragmemory http` alone."""
