"""Ways for messages to travel. Each opens a stream; none knows what the messages mean."""
