"""The types on the wire, one module a feature. Pure data, named as in the specification's schema.

Unknown fields are ignored, as the specification asks; UNSET fields are not written. Start with `base`, which
holds what all requests and results share; the other modules import only it, `content` and `input`.
"""
