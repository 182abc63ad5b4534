"""Tokens to principals, and whom the server talks to at all.

`Doorkeeper` guards every path. A call from elsewhere needs a token. On the loopback interface one may
look, submit and operate without, as `anonymous-local`; running a program takes a token even there, so
that no web page and no other user of this machine can. Names by which the server may be called are
checked against DNS rebinding, origins against pages of other sites.

Tokens are random and long, so their plain SHA-256 is what is kept of the further ones.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import ipaddress
import os
import pwd
import secrets
import stat
import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from dws.api.errors import CrossOrigin, WrongHost
from dws.model.access import Principal, Role
from dws.model.errors import InvalidArgument, Unauthenticated

TOKEN_FILE: Final = "token"
FURTHER_TOKENS_FILE: Final = "tokens.toml"
TOKEN_BYTES: Final = 32
ANONYMOUS: Final = Principal(name="anonymous-local", role=Role.OPERATOR, may_run_programs=False)

Headers = Mapping[bytes, bytes]


def load_or_create_token(state_dir: Path) -> str:
    """The server's own token, made at the first start, readable by its owner alone.

    Raises InvalidArgument when the file can be read by others, or is empty.
    """
    path = state_dir / TOKEN_FILE
    try:
        made = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, stat.S_IRUSR | stat.S_IWUSR)
    except FileExistsError:
        if path.stat().st_mode & (stat.S_IRWXG | stat.S_IRWXO):
            raise InvalidArgument(
                f"token: {path} can be read by others; run: chmod 600 {path}", field="token"
            ) from None
        token = path.read_text(encoding="utf-8").strip()
        if not token:
            raise InvalidArgument(f"token: {path} is empty; remove it", field="token") from None
        return token
    token = secrets.token_urlsafe(TOKEN_BYTES)
    with os.fdopen(made, "w", encoding="utf-8") as file:
        file.write(token + "\n")
    return token


@dataclass(frozen=True, slots=True)
class Entry:
    """Whom a token stands for; `digest` is its SHA-256."""

    digest: bytes
    principal: Principal


class TokenTable:
    """Every token this server knows."""

    def __init__(self, entries: Iterable[Entry] = ()) -> None:
        self._entries = tuple(entries)

    def principal(self, token: str) -> Principal | None:
        """Whom a token stands for, None when nobody. Takes as long whichever it is."""
        digest = hashlib.sha256(token.encode()).digest()
        found = None
        for entry in self._entries:
            if hmac.compare_digest(entry.digest, digest):
                found = entry.principal
        return found


def load_tokens(state_dir: Path) -> TokenTable:
    """The server's own token, and those in `tokens.toml` beside it.

        [[token]]
        name = "ci"
        role = "user"                # viewer, user or operator
        projects = ["research"]      # left out: all
        sha256 = "…"                 # of the token: printf %s "$TOKEN" | sha256sum

    Raises InvalidArgument naming the entry that is wrong.
    """
    own = Principal(name=_user_name(), role=Role.OPERATOR, may_run_programs=True)
    entries = [Entry(hashlib.sha256(load_or_create_token(state_dir).encode()).digest(), own)]
    path = state_dir / FURTHER_TOKENS_FILE
    if path.exists():
        try:
            told = tomllib.loads(path.read_text(encoding="utf-8"))
        except tomllib.TOMLDecodeError as error:
            raise InvalidArgument(f"{path}: {error}", field="tokens") from None
        entries += [_entry(path, number, each) for number, each in enumerate(told.get("token", []), 1)]
    return TokenTable(entries)


def _entry(path: Path, number: int, told: dict[str, Any]) -> Entry:
    where = f"{path}: token {number}"
    unknown = sorted(told.keys() - {"name", "role", "projects", "sha256"})
    if unknown:
        raise InvalidArgument(f"{where}: there is no field '{unknown[0]}'", field="tokens")
    try:
        digest = bytes.fromhex(told["sha256"])
        principal = Principal(
            name=str(told["name"]),
            role=Role(told.get("role", Role.USER)),
            projects=tuple(str(p) for p in told.get("projects", ())),
            may_run_programs=True,
        )
    except KeyError as missing:
        raise InvalidArgument(f"{where}: {missing} is missing", field="tokens") from None
    except (ValueError, TypeError) as error:
        raise InvalidArgument(f"{where}: {error}", field="tokens") from None
    if len(digest) != hashlib.sha256().digest_size:
        raise InvalidArgument(f"{where}: sha256 has 64 hexadecimal digits", field="tokens")
    return Entry(digest, principal)


def _user_name() -> str:
    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return "owner"


class Doorkeeper:
    """Decides whom the server talks to. `listen` is the address it listens at, `names` what else it may
    be called."""

    def __init__(self, tokens: TokenTable, *, listen: str = "127.0.0.1", names: Iterable[str] = ()) -> None:
        self._tokens = tokens
        self._local_only = is_loopback(listen)
        self._anywhere = listen in ("0.0.0.0", "::", "")
        self._names = {"localhost", "127.0.0.1", "::1", listen.lower(), *(n.lower() for n in names)}

    def admit(self, headers: Headers, *, changes: bool) -> None:
        """Raises WrongHost or CrossOrigin when a browser was led here; `changes` is false for reads."""
        host = headers.get(b"host", b"").decode("latin-1").lower()
        name = _host_name(host)
        if name not in self._names and not (self._anywhere and _is_address(name)):
            raise WrongHost(
                f"this server is not called '{name}'; if it is to be, start it with that name allowed"
            )
        origin = headers.get(b"origin")
        if origin is not None and origin.decode("latin-1").lower() not in (
            f"http://{host}",
            f"https://{host}",
        ):
            raise CrossOrigin()
        if changes and headers.get(b"sec-fetch-site", b"none") not in (b"none", b"same-origin"):
            raise CrossOrigin()

    def principal(self, headers: Headers, peer: str) -> Principal:
        """Who calls. Raises Unauthenticated for a wrong token, or none where one is needed."""
        given = headers.get(b"authorization")
        if given is not None:
            found = self._tokens.principal(_token(given.decode("latin-1").strip()))
            if found is None:
                raise Unauthenticated("this token is not known here", reason="unknownToken")
            return found
        forwarded = b"x-forwarded-for" in headers or b"forwarded" in headers
        if self._local_only and is_loopback(peer) and not forwarded:
            return ANONYMOUS
        raise Unauthenticated("this call needs a token: send 'Authorization: Bearer …'")


def _token(header: str) -> str:
    """The token of an Authorization header: Bearer's, or Basic's password, which is all that calendar
    programs can send. Empty when there is none."""
    kind, _, value = header.partition(" ")
    if kind.lower() != "basic":
        return value.strip() if kind.lower() == "bearer" else ""
    try:
        return base64.b64decode(value.strip(), validate=True).decode().partition(":")[2]
    except ValueError:
        return ""


def is_loopback(address: str) -> bool:
    """True for an address or name that stays on this machine."""
    if address == "localhost":
        return True
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True


def _host_name(host: str) -> str:
    """The name in a Host header, without port and brackets."""
    if host.startswith("["):
        return host[1:].partition("]")[0]
    return host.partition(":")[0]
