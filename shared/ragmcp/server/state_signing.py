"""A seal: text that others carry for us comes back as we wrote it, or not at all. It can be read."""

from __future__ import annotations

import base64
import hmac
import secrets

KEY_BYTES = 32
MAC_BYTES = 32


class Seal:
    """HMAC-SHA256 with a key of this process: after a restart old texts are refused."""

    def __init__(self) -> None:
        self._key = secrets.token_bytes(KEY_BYTES)

    def close(self, payload: bytes) -> str:
        """The payload with its seal, printable."""
        return base64.urlsafe_b64encode(self._mac(payload) + payload).decode()

    def open(self, sealed: str) -> bytes:
        """The payload. Raises ValueError where it is not what `close` gave, to the last character."""
        whole = base64.b64decode(sealed, altchars=b"-_", validate=True)
        payload = whole[MAC_BYTES:]
        # Base64 has several spellings of the same bytes; ours is the only one that counts.
        genuine = self.close(payload).encode()
        if not hmac.compare_digest(genuine, sealed.encode()):
            raise ValueError("the seal is broken")
        return payload

    def _mac(self, payload: bytes) -> bytes:
        return hmac.digest(self._key, payload, "sha256")
