"""Where the server is and with which token to speak to it, without being told.

An argument wins over the environment, the environment over what `dws serve` leaves in the state
directory: a file `token`, readable by its owner alone.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from dws.model.errors import InvalidArgument, Unauthenticated

DEFAULT_ADDRESS: Final = "http://127.0.0.1:8470"
DEFAULT_PROJECT: Final = "default"
TOKEN_FILE: Final = "token"


def state_dir(environment: Mapping[str, str] = os.environ) -> Path:
    """$DWS_STATE_DIR, else `opendws` under the XDG state directory."""
    if own := environment.get("DWS_STATE_DIR"):
        return Path(own)
    base = environment.get("XDG_STATE_HOME")
    return (Path(base) if base else Path.home() / ".local" / "state") / "opendws"


def find_address(given: str | None = None, environment: Mapping[str, str] = os.environ) -> str:
    """The server's URL without a trailing slash. Raises InvalidArgument when it is none."""
    address = (given or environment.get("DWS_ADDRESS") or DEFAULT_ADDRESS).rstrip("/")
    if "://" not in address:
        address = f"http://{address}"
    if not address.startswith(("http://", "https://")):
        raise InvalidArgument(
            f"address: '{address}' is not an http or https URL such as '{DEFAULT_ADDRESS}'",
            field="address",
        )
    return address


def find_project(given: str | None = None, environment: Mapping[str, str] = os.environ) -> str:
    """The project asked for, else $DWS_PROJECT, else `default`."""
    return given or environment.get("DWS_PROJECT") or DEFAULT_PROJECT


def find_token(given: str | None = None, environment: Mapping[str, str] = os.environ) -> str:
    """The token, empty when there is none: given, $DWS_TOKEN, $DWS_TOKEN_FILE, the state directory's.

    Raises Unauthenticated when a file was named that cannot be read, or that others may read.
    """
    if token := given or environment.get("DWS_TOKEN"):
        return token.strip()
    named = environment.get("DWS_TOKEN_FILE")
    return read_token(Path(named)) if named else _left_by_server(state_dir(environment) / TOKEN_FILE)


def read_token(path: Path) -> str:
    """The token in a file. Raises Unauthenticated when unreadable or open to others."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="utf-8")
    except OSError as error:
        raise Unauthenticated(f"token file {path}: {error.strerror}") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Unauthenticated(f"token file {path} can be read by others; run: chmod 600 {path}")
    return text.strip()


def _left_by_server(path: Path) -> str:
    try:
        return read_token(path)
    except Unauthenticated:
        if path.exists() and os.access(path, os.R_OK):
            raise
        return ""
