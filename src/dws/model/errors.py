"""The one error hierarchy of everything a caller can be told.

Each class has a canonical code (Google's vocabulary, so that every door can map it) and a stable
`reason` for programs; the docstring is the default message. Messages name the field, the value and
the limit, and say what to do next. Faces turn these into their own envelopes; nothing else does.
"""

from __future__ import annotations

from typing import ClassVar


class DwsError(Exception):
    """Something went wrong."""

    code: ClassVar[str] = "INTERNAL"
    http_status: ClassVar[int] = 500
    reason: str = "internalError"

    def __init__(
        self,
        message: str | None = None,
        *,
        field: str | None = None,
        reason: str | None = None,
        details: dict[str, object] | None = None,
    ) -> None:
        self.message = message or (self.__doc__ or "").strip()
        self.field = field
        self.details = details or {}
        if reason is not None:
            self.reason = reason
        super().__init__(self.message)


class InvalidArgument(DwsError):
    """A value in the request is not acceptable."""

    code = "INVALID_ARGUMENT"
    http_status = 400
    reason = "invalid"


class NeverFits(InvalidArgument):
    """The fleet could not hold this even if it were empty."""

    reason = "neverFits"


class NotFound(DwsError):
    """There is no such thing here."""

    code = "NOT_FOUND"
    http_status = 404
    reason = "notFound"


class AlreadyExists(DwsError):
    """Something of that name is here already."""

    code = "ALREADY_EXISTS"
    http_status = 409
    reason = "alreadyExists"


class FailedPrecondition(DwsError):
    """The state it is in does not allow that."""

    code = "FAILED_PRECONDITION"
    http_status = 400
    reason = "failedPrecondition"


class NoRoom(DwsError):
    """There is no room for that then."""

    code = "FAILED_PRECONDITION"
    http_status = 409
    reason = "noRoom"


class Conflict(DwsError):
    """Someone else changed it in the meantime; read it again."""

    code = "ABORTED"
    http_status = 409
    reason = "conflict"


class PermissionDenied(DwsError):
    """You may not do that."""

    code = "PERMISSION_DENIED"
    http_status = 403
    reason = "forbidden"


class Unauthenticated(DwsError):
    """This call needs a token."""

    code = "UNAUTHENTICATED"
    http_status = 401
    reason = "required"


class QuotaExceeded(DwsError):
    """That is more than the limit allows."""

    code = "RESOURCE_EXHAUSTED"
    http_status = 403
    reason = "quotaExceeded"


class Unavailable(DwsError):
    """Not possible right now; the same call may work in a moment."""

    code = "UNAVAILABLE"
    http_status = 503
    reason = "backendError"


class InvalidTransition(FailedPrecondition):
    """The lifecycle has no such step from here."""

    reason = "invalidTransition"


class DoubleBooking(DwsError):
    """The store refused two bookings of one unit at one instant: planner and ledger disagree."""

    reason = "doubleBooking"
