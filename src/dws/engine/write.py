"""One unit of writing: everything a command changes, through one object.

A `Write` wraps an open transaction, the books and the actor. `apply` is the only way a request changes:
lifecycle step, row, event and work in one go, so a row, its story and what is due never disagree.
"""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from dws.engine.books import Books
from dws.engine.ports import IdSource, Transaction
from dws.lifecycle import request as lifecycle
from dws.lifecycle import reservation as reservation_lifecycle
from dws.lifecycle.effects import Do, Drop, Effect
from dws.model import events as ev
from dws.model.booking import Booking
from dws.model.request import CapacityRequest
from dws.model.reservation import Reservation
from dws.model.series import Series
from dws.model.topology import Fleet, HostStatus
from dws.model.work import WorkItem, WorkKind
from dws.planner.options import PolicyOptions


@dataclass(slots=True)
class Write:
    """An open write. `events` collects what was recorded, for followers and metrics."""

    tx: Transaction
    books: Books
    policy: PolicyOptions
    ids: IdSource
    now: int
    actor: str
    call_id: str = ""
    events: list[ev.Event] = field(default_factory=list)
    ledger_changed: bool = False

    # --- requests -----------------------------------------------------------------------------

    def submit(self, request: CapacityRequest) -> CapacityRequest:
        """Record a new request."""
        event = ev.Submitted(request=request)
        step = lifecycle.submitted(event, self.now)
        self._save(step.subject, event, step.effects, "")
        return step.subject

    def apply(
        self, request: CapacityRequest, event: ev.RequestEvent, *, reason: str = "", actor: str = ""
    ) -> CapacityRequest:
        """Make the step `event` makes. Raises InvalidTransition when there is none."""
        step = lifecycle.step(request, event, self.now)
        self._save(step.subject, event, step.effects, reason, actor)
        return step.subject

    def reserve(self, reservation: Reservation) -> Reservation:
        """Record a new reservation."""
        event = ev.ReservationAsked(reservation=reservation)
        step = reservation_lifecycle.asked(event, self.now)
        self._save_reservation(step.subject, event, step.effects, "")
        return step.subject

    def apply_to(
        self,
        reservation: Reservation,
        event: ev.ReservationEvent,
        *,
        reason: str = "",
        actor: str = "",
    ) -> Reservation:
        """Make the step `event` makes of a reservation. Raises InvalidTransition when there is none."""
        step = reservation_lifecycle.step(reservation, event, self.now)
        self._save_reservation(step.subject, event, step.effects, reason, actor)
        return step.subject

    def _save(
        self,
        request: CapacityRequest,
        event: ev.RequestEvent,
        effects: tuple[Effect, ...],
        reason: str,
        actor: str = "",
    ) -> None:
        self.tx.put_request(request)
        self.books.put_request(request)
        self._tell(ev.SubjectKind.REQUEST, request, event, effects, reason, actor)

    def _save_reservation(
        self,
        reservation: Reservation,
        event: ev.ReservationEvent,
        effects: tuple[Effect, ...],
        reason: str,
        actor: str = "",
    ) -> None:
        self.tx.put_reservation(reservation)
        self.books.put_reservation(reservation)
        self._tell(ev.SubjectKind.RESERVATION, reservation, event, effects, reason, actor)

    def _tell(
        self,
        kind: ev.SubjectKind,
        subject: CapacityRequest | Reservation,
        event: ev.RequestEvent | ev.ReservationEvent,
        effects: tuple[Effect, ...],
        reason: str,
        actor: str,
    ) -> None:
        """The event and the work of a step."""
        self.events += self.tx.append(
            (
                ev.NewEvent(
                    at=self.now,
                    actor=actor or self.actor,
                    subject_kind=kind,
                    subject=subject.id,
                    project=subject.project,
                    name=subject.name,
                    reason=reason,
                    call_id=self.call_id,
                    body=event,
                ),
            )
        )
        for effect in effects:
            if isinstance(effect, Drop):
                self.tx.unschedule(subject.id, effect.kinds)
            else:
                self.do(subject.id, effect)
        self.ledger_changed = True

    def do(self, subject: int, effect: Do) -> None:
        """Schedule one effect."""
        self.tx.schedule(
            (WorkItem(kind=effect.kind, subject=subject, due_at=effect.at, tag=effect.tag),)
        )

    def wake(self, subject: int, kind: WorkKind, at: int, tag: str = "") -> None:
        """Schedule a timer."""
        self.do(subject, Do(kind=kind, at=at, tag=tag))

    # --- ledger, hosts, fleet -----------------------------------------------------------------

    def put_booking(self, booking: Booking) -> None:
        """Write one version of a booking. Only `engine/ledger.py` calls this."""
        self.tx.put_booking(booking)
        self.books.put_booking(booking)
        self.ledger_changed = True

    def put_host(self, status: HostStatus, event: ev.HostChanged, reason: str) -> None:
        """Write a host's status and say so."""
        self.tx.put_host_status(status)
        self.books.put_host(status)
        self.ledger_changed = True
        subject = zlib.crc32(f"{event.pool}/{event.host}".encode())
        self.record(ev.SubjectKind.HOST, subject, event, name=event.host, reason=reason)

    def put_fleet(self, fleet: Fleet, summary: str) -> None:
        """Write the declared fleet and say so."""
        self.tx.put_fleet(fleet)
        self.books.put_fleet(fleet)
        self.ledger_changed = True
        self.record(
            ev.SubjectKind.FLEET, 0, ev.FleetApplied(version=fleet.version, summary=summary)
        )

    def put_series(
        self, series: Series, event: ev.SeriesBegun | ev.SeriesAmended | ev.SeriesEnded
    ) -> None:
        """Write one version of a series and say so."""
        self.tx.put_series(series)
        self.record(
            ev.SubjectKind.SERIES, series.id, event, name=series.name, project=series.project
        )

    def record(
        self,
        kind: ev.SubjectKind,
        subject: int,
        body: ev.HostChanged | ev.FleetApplied | ev.Noted | ev.SeriesEvent | ev.MaintenanceEvent,
        *,
        name: str = "",
        reason: str = "",
        project: str = "",
    ) -> None:
        """Record a fact that is not about a request or a reservation."""
        self.events += self.tx.append(
            (
                ev.NewEvent(
                    at=self.now,
                    actor=self.actor,
                    subject_kind=kind,
                    subject=subject,
                    project=project,
                    name=name,
                    reason=reason,
                    call_id=self.call_id,
                    body=body,
                ),
            )
        )

    # --- parts --------------------------------------------------------------------------------

    @contextmanager
    def part(self) -> Iterator[None]:
        """A part that may fail alone: rows, books and events are as before when it raises."""
        mark, told = self.books.mark(), len(self.events)
        try:
            with self.tx.savepoint():
                yield
        except BaseException:
            self.books.undo_to(mark)
            del self.events[told:]
            raise

    def seal(self) -> None:
        """Last act of a unit: the ledger's version grows if anything the planner sees changed."""
        if self.ledger_changed:
            self.books.set_version(self.tx.bump_ledger_version())
            self.ledger_changed = False
