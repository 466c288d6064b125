"""What a server offers: tools, resources, prompts, completion, logging, subscriptions, tasks, input.

Start with `server.Server.handle`, where every transport ends; `call` is what a handler gets.
"""
