"""Identifiers and the rules for names people choose.

Ids are 63-bit, time-ordered and never reused, so a name may be used again while everything that
was recorded about its earlier bearer stays apart from it.
"""

from __future__ import annotations

import hashlib
import re
from typing import Final, NewType

from dws.model.errors import InvalidArgument

RequestId = NewType("RequestId", int)
BookingId = NewType("BookingId", int)
ReservationId = NewType("ReservationId", int)
SeriesId = NewType("SeriesId", int)
DocumentId = NewType("DocumentId", int)

NAME_MAX: Final = 63
LABELS_MAX: Final = 64
_NAME = re.compile(r"[a-z](?:[-a-z0-9]*[a-z0-9])?")
_PROJECT = re.compile(r"[a-z](?:[-a-z0-9:.]*[a-z0-9])?")
_LABEL_KEY = re.compile(r"[a-z][-_a-z0-9./]{0,62}")
_LABEL_VALUE = re.compile(r"[-_a-zA-Z0-9.]{0,63}")


def check_name(name: str, *, field: str = "name") -> str:
    """Return `name` if it is a legal resource name (RFC 1035 label, at most 63 characters).

    Raises InvalidArgument naming `field`, the value and the rule.
    """
    if len(name) > NAME_MAX:
        raise InvalidArgument(
            f"{field}: '{name}' has {len(name)} characters; at most {NAME_MAX} are allowed",
            field=field,
        )
    if not _NAME.fullmatch(name):
        raise InvalidArgument(
            f"{field}: '{name}' must begin with a lower-case letter and have only lower-case "
            "letters, digits and '-', and not end with '-'",
            field=field,
        )
    return name


def check_project(project: str, *, field: str = "project") -> str:
    """Return `project` if it is a legal project id; raises InvalidArgument otherwise."""
    if len(project) > NAME_MAX or not _PROJECT.fullmatch(project):
        raise InvalidArgument(
            f"{field}: '{project}' is not a project id (lower-case letters, digits and '-', "
            f"at most {NAME_MAX} characters)",
            field=field,
        )
    return project


def check_labels(labels: dict[str, str], *, field: str = "labels") -> dict[str, str]:
    """Return `labels` if each key and value is legal; raises InvalidArgument naming the first bad one."""
    if len(labels) > LABELS_MAX:
        raise InvalidArgument(f"{field}: {len(labels)} given, at most {LABELS_MAX} are allowed", field=field)
    for key, value in labels.items():
        if not _LABEL_KEY.fullmatch(key):
            raise InvalidArgument(
                f"{field}: key '{key}' must begin with a lower-case letter and have at most 63 of "
                "a-z 0-9 - _ . /",
                field=f"{field}.{key}",
            )
        if not _LABEL_VALUE.fullmatch(value):
            raise InvalidArgument(
                f"{field}.{key}: value '{value}' may have at most 63 of a-z A-Z 0-9 - _ .",
                field=f"{field}.{key}",
            )
    return labels


def derive_name(parent: str, suffix: str, *, limit: int = NAME_MAX) -> str:
    """A child's name from its parent's: `parent-suffix`, within `limit` characters.

    A name too long is cut and given eight characters of its digest, so that two parents sharing
    their first characters never share a child's name.
    """
    plain = f"{parent}-{suffix}"
    if len(plain) <= limit:
        return plain
    digest = hashlib.sha256(parent.encode()).hexdigest()[:8]
    room = limit - len(suffix) - len(digest) - 2
    return f"{parent[:room].rstrip('-')}-{digest}-{suffix}"
