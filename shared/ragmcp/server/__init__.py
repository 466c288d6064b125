"""What a server offers: tools, resources, prompts, completion, logging, subscriptions, tasks, input.

Start with `core.Server.handle`, where every transport ends; `call` is what a handler gets. Imports neither
`client` nor a transport.
"""
