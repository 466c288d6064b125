"""An identity provider on loopback: it publishes real keys, and signs tokens with them."""

from __future__ import annotations

import json
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Event, Thread
from typing import Any
from urllib.parse import parse_qs

import jwt
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from jwt.algorithms import ECAlgorithm, OKPAlgorithm, RSAAlgorithm

ALGORITHMS = ("RS256", "ES256", "EdDSA")


class IdentityProvider:
    """`count` is how often each path was requested. With `metadata` None it does not describe itself."""

    def __init__(self) -> None:
        self.url = ""
        self.count: Counter[str] = Counter()
        self.metadata: dict[str, Any] | None = {}
        self.keys = {algorithm: new_key(algorithm) for algorithm in ALGORITHMS}
        """By their ids."""
        self.more_keys: list[dict[str, Any]] = []
        self.asked: list[str] = []
        """The scopes of the tokens that clients asked for."""
        self.answers = Event()
        """Cleared, no request is answered."""
        self.answers.set()

    def document(self, path: str) -> Any:
        self.count[path] += 1
        self.answers.wait()
        if path == "/.well-known/oauth-authorization-server" and self.metadata is not None:
            usual = {
                "issuer": self.url,
                "token_endpoint": f"{self.url}/token",
                "jwks_uri": f"{self.url}/keys",
            }
            return usual | self.metadata
        if path == "/keys":
            return {"keys": [*(public(id, key) for id, key in self.keys.items()), *self.more_keys]}
        return None

    def token(
        self,
        audience: str | list[str],
        scope: Any = "read",
        *,
        algorithm: str = "RS256",
        key: Any = None,
        headers: dict[str, Any] | None = None,
        **claims: Any,
    ) -> str:
        """A token that is valid for a minute, but for `claims` and `headers` (None: left out)."""
        usual = {"iss": self.url, "sub": "anne", "aud": audience, "scope": scope, "exp": time.time() + 60}
        chosen = self.keys[algorithm] if key is None else key
        named = _given({"kid": algorithm} | (headers or {}))
        return jwt.encode(_given(usual | claims), chosen, algorithm, headers=named)


def _given(members: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in members.items() if value is not None}


def new_key(algorithm: str) -> Any:
    match algorithm:
        case "ES256":
            return ec.generate_private_key(ec.SECP256R1())
        case "EdDSA":
            return ed25519.Ed25519PrivateKey.generate()
    return rsa.generate_private_key(65_537, 2048)


def public(id: str, key: Any) -> dict[str, Any]:
    """A key as the provider publishes it."""
    kinds: dict[type, Any] = {rsa.RSAPrivateKey: RSAAlgorithm, ec.EllipticCurvePrivateKey: ECAlgorithm}
    [form, *_] = [form for kind, form in kinds.items() if isinstance(key, kind)] or [OKPAlgorithm]
    return {**form.to_jwk(key.public_key(), as_dict=True), "kid": id}


@contextmanager
def identity_provider() -> Iterator[IdentityProvider]:
    provider = IdentityProvider()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._answer(provider.document(self.path))

        def _answer(self, document: Any) -> None:
            body = json.dumps(document).encode()
            self.send_response(200 if document is not None else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def do_POST(self) -> None:
            """Every client gets a token for what it asks."""
            form = parse_qs(self.rfile.read(int(self.headers["Content-Length"])).decode())
            provider.asked.append(form["scope"][0])
            token = provider.token(form["resource"][0], form["scope"][0])
            self._answer({"access_token": token, "token_type": "Bearer", "expires_in": 60})

        def log_message(self, *_: Any) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        provider.url = f"http://127.0.0.1:{server.server_port}"
        thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        try:
            yield provider
        finally:
            server.shutdown()
            thread.join()
