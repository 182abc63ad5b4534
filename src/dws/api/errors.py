"""A domain error as an answer: the native envelope, or the one Google's clients expect.

Here are also the errors only HTTP knows. Nothing that is not a `DwsError` tells the caller anything but
where to look in the log.
"""

from __future__ import annotations

import re
from collections.abc import Callable

import msgspec

from dws.model.errors import DwsError, FailedPrecondition, InvalidArgument, NotFound, PermissionDenied
from dws.wire.native_v1 import ErrorBody, ErrorEnvelope

Envelope = Callable[[DwsError], bytes]


class NoSuchPath(NotFound):
    """Nothing answers at this path."""

    reason = "unknownPath"


class MethodNotAllowed(InvalidArgument):
    """This path answers to other methods."""

    http_status = 405
    reason = "methodNotAllowed"


class BodyTooLarge(InvalidArgument):
    """The body is larger than this server reads."""

    http_status = 413
    reason = "requestTooLarge"


class NotJson(InvalidArgument):
    """The body must be sent as application/json."""

    http_status = 415
    reason = "unsupportedMediaType"


class WrongHost(PermissionDenied):
    """This server is not called that."""

    http_status = 421
    reason = "wrongHost"


class ConditionNotMet(FailedPrecondition):
    """Someone else changed it in the meantime; read it again and send the fingerprint it has now."""

    http_status = 412
    reason = "conditionNotMet"


class CrossOrigin(PermissionDenied):
    """Pages of other sites may not call this server."""

    reason = "crossOrigin"


class Internal(DwsError):
    """The server hit trouble it did not expect; its log says which."""


def native(error: DwsError) -> bytes:
    """The native envelope."""
    body = ErrorBody(
        code=error.code,
        reason=error.reason,
        message=error.message,
        status=error.http_status,
        field=error.field,
        details=error.details,
    )
    return msgspec.json.encode(ErrorEnvelope(error=body), enc_hook=str)


_PUBLIC = {"missingField": "required", "unknownField": "invalid", "wrongType": "invalid"}
"""Google's words for reasons that the native door tells apart."""


def google(error: DwsError) -> bytes:
    """Google's envelope."""
    reason = _PUBLIC.get(error.reason, error.reason)
    item = {"message": error.message, "domain": "global", "reason": reason}
    if error.field:
        item |= {"location": error.field, "locationType": "parameter"}
    body = {
        "code": error.http_status,
        "message": error.message,
        "status": error.code,
        "errors": [item],
    }
    return msgspec.json.encode({"error": body})


def envelope_for(path: str) -> Envelope:
    """How errors are told at a path, whether or not a method answers there."""
    return google if path.startswith(("/compute/", "/batch/")) else native


_AT = re.compile(r" - at `(?:key in )?\$\.?([^`]*)`$")
_UNKNOWN = re.compile(r"Object contains unknown field `([^`]*)`")
_MISSING = re.compile(r"Object missing required field `([^`]*)`")


def undecodable(error: msgspec.DecodeError, *, what: str = "body") -> InvalidArgument:
    """What was wrong with a body or a query, naming the field by its path."""
    text = str(error)
    if not isinstance(error, msgspec.ValidationError):
        return InvalidArgument(f"{what}: {text[:1].lower()}{text[1:]}", field=what, reason="parseError")
    at = _AT.search(text)
    where, said = (at.group(1), text[: at.start()]) if at else ("", text)
    if unknown := _UNKNOWN.fullmatch(said):
        field = f"{where}.{unknown.group(1)}".lstrip(".")
        return InvalidArgument(f"{field}: there is no such field", field=field, reason="unknownField")
    if missing := _MISSING.fullmatch(said):
        field = f"{where}.{missing.group(1)}".lstrip(".")
        return InvalidArgument(f"{field}: is missing", field=field, reason="missingField")
    field = where or what
    said = said[:1].lower() + said[1:].replace("`", "'")
    return InvalidArgument(f"{field}: {said}", field=field, reason="wrongType")
