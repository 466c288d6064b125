"""DPoP proofs: proof of possession of the key that a token is bound to. Source: RFC 9449, SEP-1932.

Needs the package PyJWT with `cryptography`, which is imported at the first proof.
"""

from __future__ import annotations

import base64
import hashlib
import secrets
import time
from functools import cached_property
from importlib.util import find_spec
from typing import Any
from urllib.parse import urlsplit

ALGORITHM = "ES256"
TOKEN_TYPE = "dpop"


def is_available() -> bool:
    """Whether proofs can be signed here."""
    return find_spec("jwt") is not None and find_spec("cryptography") is not None


class Prover:
    """Signs proofs with one key; keeps the last nonce of each server by origin."""

    def __init__(self, pem: str = "") -> None:
        """`pem` is the key; "": a new one."""
        self.pem = pem or _new_key()
        self._nonces: dict[str, str] = {}

    def note_nonce(self, url: str, nonce: str) -> None:
        """Use this nonce in further proofs for the server at `url`."""
        self._nonces[_origin(url)] = nonce

    def proof(self, verb: str, url: str, token: str = "") -> str:
        """The `DPoP` header of one request; no two are the same."""
        import jwt

        claims: dict[str, Any] = {
            "jti": secrets.token_urlsafe(16),
            "htm": verb,
            "htu": url.partition("#")[0].partition("?")[0],
            "iat": int(time.time()),
        }
        if nonce := self._nonces.get(_origin(url)):
            claims["nonce"] = nonce
        if token:
            claims["ath"] = base64url(hashlib.sha256(token.encode()).digest())
        headers = {"typ": "dpop+jwt", "jwk": self._public_key}
        return jwt.encode(claims, self.pem, ALGORITHM, headers=headers)

    @cached_property
    def _public_key(self) -> dict[str, Any]:
        from cryptography.hazmat.primitives.serialization import load_pem_private_key
        from jwt.algorithms import ECAlgorithm

        key: Any = load_pem_private_key(self.pem.encode(), None)
        jwk: dict[str, Any] = ECAlgorithm.to_jwk(key.public_key(), as_dict=True)
        return jwk


def base64url(data: bytes) -> str:
    """URL-safe base64 without padding, as in JOSE and PKCE."""
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def _new_key() -> str:
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, generate_private_key
    from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

    key = generate_private_key(SECP256R1())
    return key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode()


def _origin(url: str) -> str:
    return urlsplit(url).netloc
