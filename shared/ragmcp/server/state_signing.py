"""HMAC-signed state tokens: readable, not forgeable."""

from __future__ import annotations

import base64
import hmac
import secrets

KEY_BYTES = 32
MAC_BYTES = 32


class StateSigner:
    """HMAC-SHA256 with a key of this process: after a restart old tokens are refused."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(KEY_BYTES)

    def sign(self, payload: bytes) -> str:
        """A token that holds the payload, in URL-safe base64."""
        return base64.urlsafe_b64encode(self._mac(payload) + payload).decode()

    def verify(self, token: str) -> bytes:
        """The payload. Raises ValueError unless `sign` gave exactly this token."""
        payload = base64.b64decode(token, altchars=b"-_", validate=True)[MAC_BYTES:]
        # Base64 can spell the same bytes in several ways; only our spelling is valid.
        if not hmac.compare_digest(self.sign(payload).encode(), token.encode()):
            raise ValueError("the signature is wrong")
        return payload

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, "sha256")
