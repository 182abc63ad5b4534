"""Page tokens: where a list goes on, sealed so that nobody needs to know what is in them.

A token is bound to the list it came from (method, project, filter, order): given to another it is
refused, as is one this server did not make. It survives restarts and does not age.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
from typing import Final

import msgspec

from dws.model.errors import InvalidArgument

MAC_BYTES: Final = 16
Position = list[str | int | None]


class PageTokens:
    """Seals and opens page tokens under one key."""

    def __init__(self, key: bytes) -> None:
        self._key = hashlib.sha256(b"page tokens\0" + key).digest()

    def seal(self, position: Position, *scope: str) -> str:
        """The token that continues a list at `position`."""
        body = msgspec.json.encode(position)
        return base64.urlsafe_b64encode(self._mac(body, scope) + body).decode().rstrip("=")

    def open(self, token: str, *scope: str) -> Position:
        """The position in a token. Raises InvalidArgument when it is not ours or of another list."""
        try:
            sealed = base64.b64decode(token + "=" * (-len(token) % 4), b"-_", validate=True)
            mac, body = sealed[:MAC_BYTES], sealed[MAC_BYTES:]
            if hmac.compare_digest(mac, self._mac(body, scope)):
                return msgspec.json.decode(body, type=Position)
        except (binascii.Error, ValueError, msgspec.DecodeError):
            pass
        raise InvalidArgument(
            "pageToken: it is not one this list gave; use nextPageToken as it is, with the same filter "
            "and order",
            field="pageToken",
        )

    def _mac(self, body: bytes, scope: tuple[str, ...]) -> bytes:
        text = msgspec.json.encode(scope) + b"\0" + body
        return hmac.digest(self._key, text, "sha256")[:MAC_BYTES]
