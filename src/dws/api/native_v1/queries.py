"""The query parameters of the native door, one struct for each kind of call."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from dws.api.method import Query

Number = Annotated[int, Meta(ge=0, le=2**63 - 1)]
PAGE_SIZE_MAX = 1_000


class SubmitQuery(Query):
    """POST …/requests."""

    validate_only: Annotated[bool, Meta(description="Only check; nothing is submitted.")] = False


class ListQuery(Query):
    """GET …/requests."""

    filter: Annotated[str, Meta(description='For example `state = "PENDING" AND labels.team = a`.')] = ""
    order_by: Annotated[str, Meta(description="For example `priority desc, submitTime`.")] = ""
    page_size: Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX, description="At most so many items.")] = 500
    page_token: Annotated[str, Meta(description="`nextPageToken` of the page before.")] = ""
    state: Annotated[str, Meta(description="States, with commas between; all when empty.")] = ""


class ReservationsQuery(Query):
    """GET …/reservations."""

    page_size: Annotated[int, Meta(ge=1, le=PAGE_SIZE_MAX, description="At most so many items.")] = 500
    page_token: Annotated[str, Meta(description="`nextPageToken` of the page before.")] = ""
    state: Annotated[str, Meta(description="States, with commas between; all when empty.")] = ""
    newest_first: Annotated[bool, Meta(description="The newest first.")] = False


class CalendarQuery(Query):
    """GET /dws/v1/calendar."""

    start: Annotated[str, Meta(description="RFC 3339, or `in 1d`; left out: now.")] = ""
    end: Annotated[str, Meta(description="RFC 3339, or `in 8d`; left out: 14 days later.")] = ""
    zone: Annotated[str, Meta(description="Only these zones, with commas between.")] = ""
    pool: Annotated[str, Meta(description="Only these pools, with commas between.")] = ""
    time_zone: Annotated[str, Meta(description="Whose local times `start` and `end` are.")] = ""


class LogQuery(Query):
    """GET …/requests/{name}:logs."""

    rank: Annotated[int, Meta(ge=0, le=2**31, description="Which instance.")] = 0
    offset: Annotated[Number, Meta(description="Bytes to skip.")] = 0
    limit: Annotated[int, Meta(ge=4, le=1_048_576, description="At most so many bytes.")] = 65_536


class FollowLogQuery(Query):
    """GET …/requests/{name}:followLogs."""

    rank: Annotated[int, Meta(ge=0, le=2**31, description="Which instance.")] = 0
    offset: Annotated[Number, Meta(description="Bytes to skip.")] = 0


class EventQuery(Query):
    """GET /dws/v1/events."""

    after: Annotated[Number, Meta(description="Only events with a larger sequence number.")] = 0
    limit: Annotated[int, Meta(ge=1, le=1_000, description="At most so many events.")] = 500
    project: Annotated[str, Meta(description="Only this project's.")] = ""
    name: Annotated[str, Meta(description="Only this request's; needs `project`.")] = ""
    reservation: Annotated[str, Meta(description="Only this reservation's; needs `project`.")] = ""
    newest_first: Annotated[bool, Meta(description="The last ones, newest first.")] = False


class FollowQuery(Query):
    """GET /dws/v1/events:follow."""

    after: Annotated[Number | None, Meta(description="Begin behind this number; left out: from now on.")] = (
        None
    )
    project: Annotated[str, Meta(description="Only this project's.")] = ""
    name: Annotated[str, Meta(description="Only this request's; needs `project`.")] = ""
    reservation: Annotated[str, Meta(description="Only this reservation's; needs `project`.")] = ""


class UsageQuery(Query):
    """GET /dws/v1/usage."""

    start: Annotated[str, Meta(description="RFC 3339; left out: since the beginning.")] = ""
    end: Annotated[str, Meta(description="RFC 3339; left out: until now.")] = ""
    project: Annotated[str, Meta(description="Only this project's.")] = ""
