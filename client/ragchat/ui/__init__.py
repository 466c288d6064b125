"""The terminal: what a person sees and types. Nothing here decides what an answer is."""
