"""Exit codes of the `dws` command: stable, documented in docs/reference/exit-codes.md.

`run` and `wait` hand on the program's own status; every other number here means the command itself.
"""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from dws.model import errors


class Exit(IntEnum):
    """What a status means."""

    OK = 0
    FAILED = 1
    USAGE = 2
    NEVER_FITS = 3
    NOT_FOUND = 4
    CONFLICT = 5
    PRECONDITION = 6
    PERMISSION = 7
    QUOTA = 8
    UNAVAILABLE = 69
    INTERNAL = 70
    WAITED_TOO_LONG = 124
    CAPACITY_LOST = 125
    INTERRUPTED = 130


_BY_CODE: Final = {
    "INVALID_ARGUMENT": Exit.USAGE,
    "NOT_FOUND": Exit.NOT_FOUND,
    "ALREADY_EXISTS": Exit.CONFLICT,
    "ABORTED": Exit.CONFLICT,
    "FAILED_PRECONDITION": Exit.PRECONDITION,
    "PERMISSION_DENIED": Exit.PERMISSION,
    "UNAUTHENTICATED": Exit.PERMISSION,
    "RESOURCE_EXHAUSTED": Exit.QUOTA,
    "UNAVAILABLE": Exit.UNAVAILABLE,
}
_BY_END: Final = {
    "DURATION_REACHED": Exit.OK,
    "RELEASED": Exit.INTERRUPTED,
    "PROGRAM_SUCCEEDED": Exit.OK,
    "PROGRAM_FAILED": Exit.FAILED,
    "CANCELLED": Exit.INTERRUPTED,
    "WAIT_LIMIT": Exit.WAITED_TOO_LONG,
    "PROVISIONING_FAILED": Exit.CAPACITY_LOST,
    "HOST_LOST": Exit.CAPACITY_LOST,
    "RESERVATION_ENDED": Exit.INTERRUPTED,
}


def of_error(error: errors.DwsError) -> Exit:
    """The status for an error the server or the client raised."""
    if isinstance(error, errors.NeverFits):
        return Exit.NEVER_FITS
    if isinstance(error, errors.NoRoom):
        return Exit.CONFLICT
    return _BY_CODE.get(error.code, Exit.INTERNAL)


def of_ended(*, end_reason: str, exit_code: int | None, has_program: bool) -> int:
    """The status of an ended request: its program's where there is one, else why it ended.

    A program ended by a signal is 128 plus the signal, as in a shell. A program that was still running
    at the end of its time is WAITED_TOO_LONG; instances merely held until their end are OK, and so are
    those their owner gave back.
    """
    if end_reason in ("WAIT_LIMIT", "PROVISIONING_FAILED", "HOST_LOST", "CANCELLED"):
        return _BY_END[end_reason]
    if not has_program:
        return Exit.OK
    if exit_code is not None:
        return 128 - exit_code if exit_code < 0 else min(exit_code, 255)
    if end_reason == "DURATION_REACHED":
        return Exit.WAITED_TOO_LONG
    return _BY_END.get(end_reason, Exit.INTERNAL)
