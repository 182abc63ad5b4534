"""Use, summed: closed records from the store, open ones from what is running."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from dws.engine import instances, occupancy
from dws.engine.answers import UsageLine
from dws.engine.books import Books
from dws.engine.ports import Reader
from dws.model.request import CapacityRequest, InstanceState
from dws.model.time import Span
from dws.model.topology import Fleet
from dws.model.usage import UsageKind, UsageRecord

NOTHING: Final = UsageLine(
    project="",
    principal="",
    request="",
    accelerator="",
    shape="",
    kind="RESERVED_IDLE",
    seconds=0,
    accelerator_s=0,
    cost_micros=0,
)


def lines(
    reader: Reader, books: Books, *, start: int, end: int, now: int, project: str
) -> tuple[UsageLine, ...]:
    """Use over [start, end), one line for each request and kind, and one for what each reservation held and
    nothing used; what is still held counts until `now`."""
    within = Span(start, end)
    sums: dict[tuple[str, str, str, str, str, str, bool], list[int]] = {}
    closed = [(r, False) for r in reader.usage(start=start, end=end)]
    running = [(r, True) for r in (*_running(books, now), *_reserved(books, now))]
    every = [*closed, *running]
    for record, is_open in every:
        if record.kind is UsageKind.RESERVED or project not in ("", record.project):
            continue
        span = Span(record.start, record.end).clipped(within)
        if span is None:
            continue
        part = _clip(record, span)
        key = (
            part.project,
            part.principal,
            part.request_name,
            part.accelerator,
            part.shape,
            part.kind.value,
            is_open,
        )
        total = sums.setdefault(key, [0, 0, 0])
        total[0] += part.seconds
        total[1] += part.seconds * part.accelerators
        total[2] += part.cost_micros
    used = [_line(key, total) for key, total in sorted(sums.items())]
    idle = _reserved_idle(every, within, books.fleet)
    return (*used, *(line for line in idle if project in ("", line.project)))


def _reserved_idle(
    every: list[tuple[UsageRecord, bool]], within: Span, fleet: Fleet
) -> Iterator[UsageLine]:
    """What each reservation held, less what ran in it meanwhile: its owner pays for that too. Records of its
    hold are of single units, those of runs of whole instances; a line counts machines as it was booked."""
    held: dict[int, UsageLine] = {}
    each: dict[int, int] = {}
    until = {r.reservation: 0 for r, _ in every}
    for record, _ in every:
        if record.kind is UsageKind.RESERVED:
            until[record.reservation] = max(until[record.reservation], record.end)
    for record, is_open in every:
        if not record.reservation or record.kind is UsageKind.FAILED_ATTEMPT:
            continue
        end = max(record.start, min(record.end, until[record.reservation]))
        span = Span(record.start, end).clipped(within)
        if span is None:
            continue
        part = _clip(record, span)
        sign = 1 if record.kind is UsageKind.RESERVED else -1
        units = 1
        if sign < 0:
            units = _units(fleet, record)
        else:
            each[record.reservation] = _units(fleet, record)
        line = held.get(record.reservation, NOTHING)
        if sign > 0:
            line = replace(
                line,
                project=part.project,
                principal=part.principal,
                request=part.request_name,
                accelerator=part.accelerator,
                shape=part.shape,
                open=line.open or is_open,
            )
        held[record.reservation] = replace(
            line,
            seconds=line.seconds + sign * units * part.seconds,
            accelerator_s=line.accelerator_s + sign * part.seconds * part.accelerators,
            cost_micros=line.cost_micros + sign * part.cost_micros,
        )
    for number, line in sorted(held.items()):
        if line.request and line.seconds > 0:
            yield replace(line, seconds=line.seconds // each[number])


def _units(fleet: Fleet, record: UsageRecord) -> int:
    """Units of its pool that a machine of the record's shape takes; 1 where that is not known any more."""
    pool = next((p for p in fleet.pools if p.name == record.pool), None)
    piece = pool.piece_of(record.shape) if pool is not None else None
    return piece.units if piece is not None else 1


def _reserved(books: Books, now: int) -> Iterator[UsageRecord]:
    """What open reservations hold, until now."""
    with books.lock:
        for reservation in books.reservations.values():
            booking = books.bookings.get(reservation.booking or 0)
            if booking is not None:
                pool = books.fleet.pool(booking.pool)
                yield from occupancy.reserved(pool, reservation, booking, now)


def cost_micros(reader: Reader, books: Books, request: CapacityRequest, now: int) -> int:
    """What a request has cost until now."""
    closed = sum(
        r.cost_micros for r in reader.usage(start=0, end=now + 1, request=request.id)
    )
    return closed + sum(r.cost_micros for r in _open_of(books, request, now))


def _running(books: Books, now: int) -> Iterator[UsageRecord]:
    with books.lock:
        holding = tuple(books.holding.values())
    for request in holding:
        yield from _open_of(books, request, now)


def _open_of(books: Books, request: CapacityRequest, now: int) -> Iterator[UsageRecord]:
    if request.grant is None or request.state.is_terminal:
        return
    pool = books.fleet.pool(request.grant.pool)
    for instance in request.grant.instances:
        metered = instance.metered_from and instance.is_held
        if metered and instance.state is not InstanceState.RELEASING:
            yield instances.usage_record(request, pool, instance, instance.metered_from, now)


def _clip(record: UsageRecord, span: Span) -> UsageRecord:
    return replace(record, start=span.start, end=span.end)


def _line(key: tuple[str, str, str, str, str, str, bool], total: list[int]) -> UsageLine:
    project, principal, request, accelerator, shape, kind, is_open = key
    return UsageLine(
        project=project,
        principal=principal,
        request=request,
        accelerator=accelerator,
        shape=shape,
        kind=kind,
        seconds=total[0],
        accelerator_s=total[1],
        cost_micros=total[2],
        open=is_open,
    )
