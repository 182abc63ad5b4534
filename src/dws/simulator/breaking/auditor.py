"""The auditor: reads every event in order and says so when one must not be.

What it knows: a request's steps, that a slot of a host has one holder, that a gang is whole and what was
asked for (`shapes.py`), that a promise moves later only after recorded trouble, and what use costs. It keeps
its own model (`model.py`) and never asks the engine what is right. Reservations and series are the business
of its `calendar`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from dws.model import events as ev
from dws.model.demand import UNTIL_END
from dws.model.request import Grant
from dws.model.topology import Fleet, Pool
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.calendar import CalendarAuditor
from dws.simulator.breaking.model import END_OF, Excuses, Held, Phase, Place, Told, place_of
from dws.simulator.breaking.outcome import Broken
from dws.simulator.breaking.shapes import are_as_asked, machines

UNIT_KIND = "RUN"
FAILED_KIND = "FAILED_ATTEMPT"


class Auditor:
    """Judges events. `fleet` gives the declared fleet at the moment of asking."""

    def __init__(self, fleet: Callable[[], Fleet], policy: PolicyOptions) -> None:
        self.requests: dict[int, Told] = {}
        self.holders: dict[tuple[str, int, int], int] = {}
        self.host_states: dict[tuple[str, str], str] = {}
        self.seq = 0
        self.now = 0
        self._subject_seq: dict[tuple[str, int], int] = {}
        self._excuses = Excuses()
        self._unexplained: list[tuple[Told, int, str]] = []
        self._ask_fleet = fleet
        self._fleet = fleet()
        self.calendar = CalendarAuditor(self.requests, self._excuses, policy, lambda: self._fleet)
        self._judges: dict[type, Callable[[Told, Any], None]] = {
            ev.Booked: self._booked,
            ev.Moved: self._moved,
            ev.Unbooked: self._unbooked,
            ev.Amended: self._amended,
            ev.Started: self._started,
            ev.InstancesRan: self._ran,
            ev.InstanceExited: self._exited,
            ev.InstanceLost: self._lost,
            ev.InstancesReleased: self._released,
            ev.InstanceReplaced: self._replaced,
            ev.Delivered: self._delivered,
            ev.DeliveryFailed: self._delivery_failed,
            ev.Warned: self._warned,
            ev.Extended: self._extended,
            ev.Ended: self._ended,
            ev.PartReleased: self._part_released,
            ev.CancelRequested: self._cancel_requested,
            ev.WindowClosed: self._window_closed,
            ev.Returned: self._returned,
            ev.Unreachable: self._unreachable,
            ev.Reachable: self._reachable,
            ev.Overran: self._overran,
            ev.Deleted: self._deleted,
        }

    def process_was_away(self, start: int, end: int) -> None:
        """Nobody could act between these instants: what fell due then may be late."""
        self._excuses.away(start, end)
        self._excuses.trouble(self.seq + 1)

    def settled(self) -> None:
        """Everything of one commit has been judged: what it withdrew must have a cause by now."""
        for told, promised_at_seq, words in self._unexplained:
            excused = self._excuses.since_inside(told.demand.reservation, promised_at_seq)
            if not excused and not self.calendar.is_short(told.demand.reservation):
                raise Broken(f"{words}, but nothing had happened")
        self._unexplained.clear()

    def judge(self, event: ev.Event) -> None:
        """Take in the next event. Raises Broken when it must not be."""
        self._numbers(event)
        if event.subject_kind in (ev.SubjectKind.RESERVATION, ev.SubjectKind.SERIES):
            self.calendar.judge(event)
            return
        if event.subject_kind is not ev.SubjectKind.REQUEST:
            self._around(event)
            return
        if isinstance(event.body, ev.Submitted):
            self._submitted(event, event.body)
            return
        told = self.requests.get(event.subject)
        if told is None:
            raise Broken(f"{event.kind} of request {event.subject}, which was never submitted")
        if told.is_over and not isinstance(event.body, ev.Deleted):
            raise Broken(f"'{told.name}' is {told.phase}, and {event.kind} happened to it")
        self._judges[type(event.body)](told, event.body)

    # --- every event --------------------------------------------------------------------------

    def _numbers(self, event: ev.Event) -> None:
        if event.seq != self.seq + 1:
            raise Broken(f"event {event.seq} follows event {self.seq}")
        subject = (event.subject_kind.value, event.subject)
        before = self._subject_seq.get(subject, 0)
        if event.subject_seq != before + 1:
            raise Broken(f"event {event.seq}: number {event.subject_seq} of its subject, after {before}")
        if event.at < self.now:
            raise Broken(f"event {event.seq} happened at {event.at}, before the one before it")
        if not event.actor:
            raise Broken(f"event {event.seq} ({event.kind}) has no actor")
        self.seq, self.now, self._subject_seq[subject] = event.seq, event.at, event.subject_seq

    def _around(self, event: ev.Event) -> None:
        match event.body:
            case ev.HostChanged(pool=pool, host=host, state=state):
                self.host_states[pool, host] = state
                if state != "READY":
                    self._excuses.trouble(event.seq)
            case ev.FleetApplied():
                self._unexplained.clear()
                self._fleet = self._ask_fleet()
                self._excuses.trouble(event.seq)
            case ev.MaintenancePlanned():
                self._unexplained.clear()
                self._excuses.trouble(event.seq)
            case _:
                pass

    # --- waiting ------------------------------------------------------------------------------

    def _submitted(self, event: ev.Event, body: ev.Submitted) -> None:
        request = body.request
        if event.subject in self.requests:
            raise Broken(f"request {event.subject} was submitted twice")
        twin = next(
            (
                t
                for t in self.requests.values()
                if (t.project, t.name) == (request.project, request.name) and not t.is_over
            ),
            None,
        )
        if twin is not None:
            raise Broken(f"two living requests are called '{request.name}'")
        self.requests[event.subject] = Told(
            id=event.subject,
            name=request.name,
            project=request.project,
            demand=request.demand,
            on_host_loss=request.on_host_loss,
            submitted=event.at,
        )

    def _must_be(self, told: Told, event: str, *phases: Phase) -> None:
        if told.phase not in phases:
            raise Broken(f"{event} happened to '{told.name}', which is {told.phase}")

    def _booked(self, told: Told, body: ev.Booked) -> None:
        self._must_be(told, "Booked", "PENDING", "BOOKED")
        if told.promise and body.start > told.promise:
            late = body.start - told.promise
            raise Broken(f"the promise of '{told.name}' moved {late} s later without a cause")
        self._promise(told, body.start)

    def _moved(self, told: Told, body: ev.Moved) -> None:
        self._must_be(told, "Moved", "BOOKED")
        is_later = body.start > told.promise
        if not body.cause or (is_later and not self._has_cause(told)):
            raise Broken(f"the promise of '{told.name}' was moved ('{body.cause}') but nothing had happened")
        self._promise(told, body.start)

    def _has_cause(self, told: Told) -> bool:
        """True when trouble was recorded since the promise, or somebody's hosts are still not back."""
        not_back = any(t.phase == "ENDING" or self._is_late(t) for t in self.requests.values())
        aim = told.demand.reservation
        inside = self._excuses.since_inside(aim, told.promised_at_seq) or self.calendar.is_short(aim)
        return not_back or inside or self._excuses.since(told.promised_at_seq)

    def _is_late(self, told: Told) -> bool:
        """True while nobody has said what became of its order, although the set-up limit is over."""
        if told.phase != "PROVISIONING" or told.held is None:
            return False
        return self.now > told.held.started + self._fleet.pool(told.held.pool).overheads.setup_s

    def _promise(self, told: Told, start: int) -> None:
        told.phase, told.promise, told.promised_at_seq = "BOOKED", start, self.seq
        demand = told.demand
        if not max(demand.not_before, self.now) <= start <= demand.not_after:
            raise Broken(f"'{told.name}' is promised {start}, outside its window or in the past")

    def _unbooked(self, told: Told, body: ev.Unbooked) -> None:
        self._must_be(told, "Unbooked", "BOOKED")
        by_owner = body.cause.startswith("amended")
        if not by_owner and not self._has_cause(told):
            words = f"the promise of '{told.name}' was withdrawn ('{body.cause}')"
            self._unexplained.append((told, told.promised_at_seq, words))
        told.phase, told.promise = "PENDING", 0

    def _amended(self, told: Told, body: ev.Amended) -> None:
        self._must_be(told, "Amended", "PENDING", "BOOKED")
        told.demand = body.demand
        told.on_host_loss = body.on_host_loss

    def _window_closed(self, told: Told, body: ev.WindowClosed) -> None:
        del body
        self._must_be(told, "WindowClosed", "PENDING", "BOOKED")
        aim = self.calendar.blocks.get(told.demand.reservation)
        is_in_vain = aim is not None and aim.is_closed
        if self.now <= told.demand.not_after and not is_in_vain:
            raise Broken(f"'{told.name}' expired while its window was open")
        told.phase = "EXPIRED"

    # --- starting -----------------------------------------------------------------------------

    def _started(self, told: Told, body: ev.Started) -> None:
        self._must_be(told, "Started", "PENDING", "BOOKED")
        grant = body.grant
        if told.promise and self.now > told.promise and not self._excuses.was_away_at(told.promise):
            raise Broken(f"'{told.name}' started {self.now - told.promise} s later than promised")
        if not told.demand.not_before <= self.now <= told.demand.not_after:
            raise Broken(f"'{told.name}' started outside its window")
        if self.now < told.not_again_before:
            raise Broken(f"'{told.name}' tried again {told.not_again_before - self.now} s too early")
        if grant.attempt != told.attempts + 1:
            raise Broken(f"'{told.name}' began attempt {grant.attempt} after {told.attempts}")
        pool = self._fleet.pool(grant.pool)
        places = {i.rank: place_of(i) for i in grant.instances}
        slices = self._is_what_was_asked(told, grant, pool, list(places.values()))
        asked_s = told.demand.alternatives[grant.alternative].duration_s
        if grant.duration_s != asked_s and asked_s != UNTIL_END:
            raise Broken(f"'{told.name}' asked for another duration than {grant.duration_s} s")
        self.calendar.entered(told, grant, sum(len(p.slots) for p in places.values()), self.now)
        told.phase, told.attempts, told.promise = "PROVISIONING", grant.attempt, 0
        told.held = Held(
            attempt=grant.attempt,
            pool=pool.name,
            duration_s=grant.duration_s,
            started=self.now,
            inside=grant.reservation,
            places=places,
            slices=slices,
        )
        for place in told.held.places.values():
            self._take(told, pool, place)

    def _is_what_was_asked(self, told: Told, grant: Grant, pool: Pool, places: list[Place]) -> int:
        """Returns how many slices of several machines it is, 0 for anything else."""
        wanted = told.demand.alternatives[grant.alternative]
        block = self.calendar.blocks.get(grant.reservation)
        ask = machines(wanted, pool, block.shape if block is not None else "")
        if ask is None or ask.shape != grant.shape:
            raise Broken(f"'{told.name}' wanted {wanted} and got {grant.shape}")
        are_as_asked(told.name, ask, pool, [place.spots for place in places])
        zone = self._fleet.zone(pool.zone)
        if wanted.locations and not {pool.zone, zone.region if zone else ""} & set(wanted.locations):
            raise Broken(f"'{told.name}' started in {pool.zone}, outside {wanted.locations}")
        level = wanted.within
        if level not in (None, "pool"):
            domains = {p.host if level == "host" else pool.domain_of(p.unit, level) for p in places}
            if len(domains) != 1 or "" in domains:
                raise Broken(f"'{told.name}' is spread over {sorted(domains)}, wanted within one {level}")
        return ask.slices if ask.slices < ask.count else 0

    def _take(self, told: Told, pool: Pool, place: Place) -> None:
        for unit, slot in place.spots:
            holder = self.holders.get((pool.name, unit, slot))
            if holder is not None:
                other = self.requests[holder].name
                where = f"slot {slot} of {place.host}" if pool.is_shared else place.host
                raise Broken(f"{where} was given to '{told.name}' while '{other}' holds it")
            self.holders[pool.name, unit, slot] = told.id
        state = self.host_states.get((pool.name, place.host), "READY")
        if state in ("DOWN", "DRAINING"):
            raise Broken(f"{place.host} was given to '{told.name}' while it is {state}")
        if pool.hosts[place.unit] != place.host:
            raise Broken(f"unit {place.unit} of {pool.name} is not {place.host}")

    def _free(self, told: Told, place: Place) -> None:
        place.is_held = place.is_up = False
        for unit, slot in place.spots:
            if self.holders.pop((_held(told).pool, unit, slot), None) != told.id:
                raise Broken(f"'{told.name}' gave back {place.host}, which it did not hold")

    # --- running ------------------------------------------------------------------------------

    def _ran(self, told: Told, body: ev.InstancesRan) -> None:
        self._must_be(told, "InstancesRan", "PROVISIONING", "ACTIVE")
        held = _held(told)
        for rank in body.addresses:
            place = held.places[rank]
            if not place.is_held or body.attempt != held.attempt:
                raise Broken(f"rank {rank} of '{told.name}' runs, but it is not there")
            if place.is_up:
                raise Broken(f"rank {rank} of '{told.name}' came up twice")
            place.is_up = True
            if held.delivered:
                place.metered_from = place.metered_from or self.now

    def _exited(self, told: Told, body: ev.InstanceExited) -> None:
        self._must_be(told, "InstanceExited", "PROVISIONING", "ACTIVE", "ENDING")
        if not _held(told).places[body.rank].is_held:
            raise Broken(f"rank {body.rank} of '{told.name}' exited after it was gone")

    def _delivered(self, told: Told, body: ev.Delivered) -> None:
        self._must_be(told, "Delivered", "PROVISIONING")
        held = _held(told)
        down = [rank for rank, place in held.places.items() if not place.is_up]
        if down:
            raise Broken(f"'{told.name}' was called delivered while ranks {down} are not up")
        ends_at = self.now + held.duration_s
        if told.demand.end_by:
            ends_at = max(self.now, min(ends_at, told.demand.end_by))
        if body.ends_at != self.calendar.latest_end(told, self.now, ends_at):
            raise Broken(f"'{told.name}' is to end at {body.ends_at}, not a duration after its delivery")
        if self.now > held.started + self._fleet.pool(held.pool).overheads.setup_s:
            self._excuses.trouble(self.seq)  # answered late, so it holds its hosts longer than booked
        told.phase, held.delivered, held.ends_at = "ACTIVE", self.now, body.ends_at
        for place in held.places.values():
            place.metered_from = self.now

    def _warned(self, told: Told, body: ev.Warned) -> None:
        self._must_be(told, "Warned", "ACTIVE")
        if body.ends_at != _held(told).ends_at:
            raise Broken(f"'{told.name}' was warned of an end that is not its own")

    def _extended(self, told: Told, body: ev.Extended) -> None:
        self._must_be(told, "Extended", "ACTIVE")
        if body.ends_at <= _held(told).ends_at:
            raise Broken(f"'{told.name}' was extended backwards")
        self.calendar.extended(told, body.ends_at, self.now)
        _held(told).ends_at = body.ends_at

    def _unreachable(self, told: Told, body: ev.Unreachable) -> None:
        del body
        self._must_be(told, "Unreachable", "PROVISIONING", "ACTIVE")
        _held(told).unreachable = True

    def _reachable(self, told: Told, body: ev.Reachable) -> None:
        del body
        self._must_be(told, "Reachable", "PROVISIONING", "ACTIVE")
        _held(told).unreachable = False

    def _lost(self, told: Told, body: ev.InstanceLost) -> None:
        self._must_be(told, "InstanceLost", "PROVISIONING", "ACTIVE", "ENDING")
        place = _held(told).places[body.rank]
        self._bill(told, body.rank)
        self._free(told, place)
        place.is_lost = True

    def _replaced(self, told: Told, body: ev.InstanceReplaced) -> None:
        self._must_be(told, "InstanceReplaced", "ACTIVE")
        held, new = _held(told), body.instance
        if held.places[new.rank].is_held:
            raise Broken(f"rank {new.rank} of '{told.name}' was replaced while it is there")
        if held.slices:
            raise Broken(f"rank {new.rank} of '{told.name}' was replaced, which tears its slice")
        place = place_of(new)
        if len(place.slots) != len(held.places[new.rank].slots):
            raise Broken(f"rank {new.rank} of '{told.name}' was replaced by {len(place.slots)} slots")
        held.places[new.rank] = place
        self._take(told, self._fleet.pool(held.pool), place)

    # --- ending -------------------------------------------------------------------------------

    def _part_released(self, told: Told, body: ev.PartReleased) -> None:
        self._must_be(told, "PartReleased", "ACTIVE")
        torn = [rank for rank in body.ranks if not set(body.ranks).issuperset(_held(told).mates(rank))]
        if torn:
            raise Broken(f"'{told.name}' gave back ranks {torn}, which tears their slices")
        for rank in body.ranks:
            self._bill(told, rank)
            _held(told).places[rank].is_leaving = True

    def _ended(self, told: Told, body: ev.Ended) -> None:
        self._must_be(told, "Ended", "ACTIVE")
        held = _held(told)
        if body.why == "DURATION_REACHED" and self.now < held.ends_at:
            raise Broken(f"'{told.name}' was ended {held.ends_at - self.now} s before its end")
        self._leave(told, body.why, requeue=body.requeue)

    def _leave(self, told: Told, why: str, *, requeue: bool) -> None:
        for rank in _held(told).places:
            self._bill(told, rank)
            _held(told).places[rank].is_leaving = True
        told.phase, told.ending, told.requeue = "ENDING", why, requeue

    def _delivery_failed(self, told: Told, body: ev.DeliveryFailed) -> None:
        self._must_be(told, "DeliveryFailed", "PROVISIONING")
        if not body.cause:
            raise Broken(f"an attempt of '{told.name}' failed without a cause")
        told.not_again_before = body.not_again_before
        self._leave(told, "PROVISIONING_FAILED", requeue=body.may_retry)

    def _cancel_requested(self, told: Told, body: ev.CancelRequested) -> None:
        del body
        if told.phase == "PROVISIONING":
            self._leave(told, "CANCELLED", requeue=False)
        elif told.phase == "ENDING" and told.requeue:
            told.ending, told.requeue = "CANCELLED", False
        else:
            self._must_be(told, "CancelRequested", "PENDING", "BOOKED")
            told.phase = "CANCELLED"

    def _overran(self, told: Told, body: ev.Overran) -> None:
        del body
        self._must_be(told, "Overran", "ENDING")
        self._excuses.trouble(self.seq)
        if told.inside:
            self.calendar.blocks[told.inside].overran = True

    def _released(self, told: Told, body: ev.InstancesReleased) -> None:
        self._must_be(told, "InstancesReleased", "ACTIVE", "ENDING")
        for rank in body.ranks:
            self._bill(told, rank)
            self._free(told, _held(told).places[rank])

    def _returned(self, told: Told, body: ev.Returned) -> None:
        del body
        self._must_be(told, "Returned", "ENDING")
        held = _held(told)
        left = [place.host for place in held.places.values() if place.is_held]
        if left:
            raise Broken(f"'{told.name}' is called over while it holds {left}")
        if not held.delivered:
            told.uses += [(rank, held.started, self.now, FAILED_KIND, held.inside) for rank in held.places]
        told.held = None
        told.phase = "PENDING" if told.requeue else END_OF[told.ending]
        told.requeue = False

    def _deleted(self, told: Told, body: ev.Deleted) -> None:
        del body
        if not told.is_over or told.deleted:
            raise Broken(f"'{told.name}' was deleted while {told.phase}")
        told.deleted = True

    def _bill(self, told: Told, rank: int) -> None:
        """Use of an instance ends now, if it had begun and has not ended yet."""
        place = _held(told).places[rank]
        if place.metered_from and place.is_held and not place.is_leaving:
            told.uses.append((rank, place.metered_from, self.now, UNIT_KIND, told.inside))
            if told.inside:
                block = self.calendar.blocks[told.inside]
                for spot in place.spots:
                    block.uses.append((spot, place.metered_from, self.now))
            place.metered_from = 0


def _held(told: Told) -> Held:
    if told.held is None:
        raise Broken(f"'{told.name}' is {told.phase} and holds nothing")
    return told.held
