"""Client registration: made by the user, by the address of a metadata document, or dynamic.

Source: basic/authorization/client-registration, RFC 7591.
"""

from __future__ import annotations

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from ragmcp.oauth.discovery import ServerMetadata
from ragmcp.oauth.errors import AuthorizationFailed
from ragmcp.oauth.store import Registration, Store
from ragmcp.oauth.web import Web
from ragmcp.protocol.decoding import DECODE_ERRORS


class Identity(Struct, frozen=True, kw_only=True):
    """The client. `registered` is a registration made by the user, at the issuer `registered_at` unless "".

    `metadata_url` is the address of the client's metadata document, or "".
    """

    name: str
    registered: Registration | None = None
    registered_at: str = ""
    metadata_url: str = ""


async def register(
    web: Web, server: ServerMetadata, identity: Identity, redirect_uri: str, store: Store
) -> Registration:
    """Our registration at this server, in the specification's order of preference.

    Raises AuthorizationFailed.
    """
    registration = await _registration(web, server, identity, redirect_uri, store)
    store.keep_registration(server.issuer, registration)  # A later refresh needs it.
    return registration


async def _registration(
    web: Web, server: ServerMetadata, identity: Identity, redirect_uri: str, store: Store
) -> Registration:
    if identity.registered is not None:
        if identity.registered_at not in ("", server.issuer):
            reason = f"the client id that you gave belongs to {identity.registered_at}"
            raise AuthorizationFailed(server.issuer, reason, "Register at the new server, and give that id.")
        return identity.registered
    if identity.metadata_url and server.client_id_metadata_document_supported:
        return Registration(identity.metadata_url, token_endpoint_auth_method="none")
    if (known := store.registration(server.issuer)) is not None:
        return known
    if server.registration_endpoint:
        return await _register_now(web, server, identity, redirect_uri)
    hint = "Register there by hand, and give the client id."
    raise AuthorizationFailed(server.issuer, "it registers no clients by itself", hint)


async def _register_now(
    web: Web, server: ServerMetadata, identity: Identity, redirect_uri: str
) -> Registration:
    methods = server.token_endpoint_auth_methods_supported
    method = next(
        (one for one in ("none", "client_secret_basic", "client_secret_post") if one in methods), "none"
    )
    answer = await web.post(
        server.registration_endpoint,
        json={
            "client_name": identity.name,
            "redirect_uris": [redirect_uri],
            "grant_types": ["authorization_code", "refresh_token"],
            "response_types": ["code"],
            "token_endpoint_auth_method": method,
            "application_type": "native",
        },
    )
    if answer.status not in (200, 201):
        raise AuthorizationFailed(server.issuer, f"it refused to register us (status {answer.status})")
    try:
        found = msgspec.json.decode(answer.body, type=Registration)
    except DECODE_ERRORS as error:
        raise AuthorizationFailed(server.issuer, f"its registration is not usable: {error}") from None
    return replace(found, token_endpoint_auth_method=found.token_endpoint_auth_method or method)
