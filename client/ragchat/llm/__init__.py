"""Language models: the client, its errors, which models there are, how many tokens a text has.

Start with `client`; `discovery` finds a model where none is configured.
"""
