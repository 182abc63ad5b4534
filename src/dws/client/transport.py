"""One HTTP call to the server: sent, retried where that is safe, and its failure turned into an error.

Every call that changes something carries a `requestId`, so that repeating it after a broken connection
changes nothing twice. The HTTP library is imported on the first call: most of a command's start-up
time would otherwise go there.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, TypeVar

import msgspec

from dws.model import errors
from dws.wire.native_v1 import ErrorEnvelope

if TYPE_CHECKING:
    import httpx2

T = TypeVar("T")
RETRY_PAUSES_S: Final = (0.1, 0.5, 1.0)
QUIET_S: Final = 60.0
"""How long a followed stream may be silent before it is taken for dead and opened again."""


class NoServer(errors.Unavailable):
    """No server answers."""

    reason = "noServer"


def _classes() -> dict[str, type[errors.DwsError]]:
    """Error classes by canonical code; of several with one code the plainest."""
    found: dict[str, type[errors.DwsError]] = {"INTERNAL": errors.DwsError}
    for child in errors.DwsError.__subclasses__():
        found.setdefault(child.code, child)
    return found


_BY_CODE = _classes()
_BY_REASON = {errors.NeverFits.reason: errors.NeverFits, errors.NoRoom.reason: errors.NoRoom}
_BY_STATUS = {401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED", 404: "NOT_FOUND", 503: "UNAVAILABLE"}


def error_from(status: int, body: bytes) -> errors.DwsError:
    """The error a failing answer stands for, with its reason, field, message and details."""
    try:
        told = msgspec.json.decode(body, type=ErrorEnvelope).error
    except msgspec.MsgspecError:
        code = _BY_STATUS.get(status, "INTERNAL")
        text = body[:200].decode(errors="replace").strip()
        return _BY_CODE[code](f"the server answered {status}: {text or 'nothing'}")
    kind = _BY_REASON.get(told.reason) or _BY_CODE.get(told.code, errors.DwsError)
    return kind(told.message, field=told.field, reason=told.reason, details=told.details)


class Transport:
    """Connections to one server. `timeout_s` bounds one call, not a followed stream."""

    def __init__(
        self,
        *,
        address: str,
        token: str,
        timeout_s: float,
        inner: httpx2.BaseTransport | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        self.address = address
        self._token = token
        self._timeout_s = timeout_s
        self._inner = inner
        self._pause = pause
        self._http: httpx2.Client | None = None
        self._reached = False

    @property
    def http(self) -> httpx2.Client:
        """The HTTP client, made on first use."""
        if self._http is None:
            import httpx2

            headers = {"accept": "application/json"}
            if self._token:
                headers["authorization"] = f"Bearer {self._token}"
            self._http = httpx2.Client(
                base_url=self.address,
                headers=headers,
                timeout=self._timeout_s,
                transport=self._inner,
                trust_env=self._inner is None,
            )
        return self._http

    def close(self) -> None:
        """Close every connection; harmless twice."""
        if self._http is not None:
            self._http.close()
            self._http = None

    def call(
        self,
        method: str,
        path: str,
        answer: type[T],
        *,
        query: Mapping[str, object] | None = None,
        body: msgspec.Struct | None = None,
        request_id: str | None = None,
        once: bool = False,
    ) -> T:
        """Call, and decode the answer. Empty query values are left out.

        A call that changes something gets a `requestId` unless `request_id` is given. With `once` a call
        that may have arrived is never repeated and may take as long as it takes.
        Raises the error the server names, NoServer when there is none.
        """
        params = _params(query)
        if method != "GET":
            params["requestId"] = request_id or new_request_id()
        content = None if body is None else msgspec.json.encode(body)
        response = self._send(method, path, params, content, once=once)
        if response.status_code >= 400:
            raise error_from(response.status_code, response.content)
        try:
            return msgspec.json.decode(response.content or b"{}", type=answer)
        except msgspec.MsgspecError as error:
            raise errors.DwsError(f"{self.address} answers {path} with something else: {error}") from None

    def text(self, path: str) -> str:
        """Get what is not JSON. Raises as `call`."""
        response = self._send("GET", path, {}, None, once=False)
        if response.status_code >= 400:
            raise error_from(response.status_code, response.content)
        return response.text

    def _send(
        self, method: str, path: str, params: dict[str, str], content: bytes | None, *, once: bool
    ) -> httpx2.Response:
        """Send, and send again when the connection broke or the server asks for a moment's patience."""
        import httpx2

        headers = {} if content is None else {"content-type": "application/json"}
        timeout = httpx2.Timeout(self._timeout_s, read=None if once else self._timeout_s)
        for pause_s in (*RETRY_PAUSES_S, None):
            try:
                response = self.http.request(
                    method, path, params=params, content=content, headers=headers, timeout=timeout
                )
            except httpx2.ConnectError as error:
                if pause_s is None or not self._reached:
                    raise self._no_server(error) from None
            except httpx2.TransportError as error:
                if pause_s is None or once:
                    raise self._no_server(error) from None
            else:
                self._reached = True
                if response.status_code != 503 or pause_s is None:
                    return response
            self._pause(pause_s)
        raise AssertionError("the last attempt returns or raises")

    def reachable_or_raise(self) -> None:
        """Do nothing when this server has answered before (it may come back); raise NoServer if not."""
        if not self._reached:
            raise self._no_server(ConnectionError("never reached"))

    def _no_server(self, error: Exception) -> NoServer:
        return NoServer(
            f"no server answers at {self.address} ({error or type(error).__name__}); "
            "start one with 'dws serve', or name another with DWS_ADDRESS or --address"
        )

    @contextmanager
    def stream(self, path: str, query: Mapping[str, object]) -> Iterator[Iterator[str]]:
        """Open a stream of server-sent events and give its lines.

        Raises what the server names, NoServer when it cannot be reached or falls silent.
        """
        import httpx2

        patience = httpx2.Timeout(self._timeout_s, read=QUIET_S)
        try:
            with self.http.stream(
                "GET",
                path,
                params=_params(query),
                headers={"accept": "text/event-stream"},
                timeout=patience,
            ) as response:
                if response.status_code >= 400:
                    raise error_from(response.status_code, response.read())
                self._reached = True
                yield response.iter_lines()
        except httpx2.TransportError as error:
            raise self._no_server(error) from None


def new_request_id() -> str:
    """A fresh idempotency key."""
    return str(uuid.uuid4())


def _params(query: Mapping[str, object] | None) -> dict[str, str]:
    return {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in (query or {}).items()
        if value not in (None, "")
    }


def server_sent(lines: Iterator[str]) -> Iterator[dict[str, Any]]:
    """Group lines into server-sent events: `{"id": …, "event": …, "data": …}`; comments are skipped."""
    fields: dict[str, Any] = {}
    for line in lines:
        if not line:
            if "data" in fields:
                yield fields
            fields = {}
        elif not line.startswith(":"):
            name, _, value = line.partition(":")
            value = value.removeprefix(" ")
            fields[name] = f"{fields['data']}\n{value}" if name == "data" and "data" in fields else value
