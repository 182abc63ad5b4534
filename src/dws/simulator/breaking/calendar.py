"""The auditor of the calendar: what may happen to a reservation, a series, and to what runs inside one.

It knows what was booked for whom, and says so when a booking moves, shrinks, opens late without a cause,
lets somebody in who may not be there, or is given up otherwise than the rules allow. What time or the
planner decide is held against the policy; whom a person may ask for what, the commands know.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

from dws.model import events as ev
from dws.model.demand import ANY_RESERVATION, OPEN_ENDED_S, UNTIL_END
from dws.model.request import Grant
from dws.model.time import Span
from dws.model.topology import Fleet
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.block import AHEAD, OPEN, PENDING, Block, Cycle
from dws.simulator.breaking.model import Excuses, Told
from dws.simulator.breaking.outcome import Broken
from dws.simulator.breaking.people import OLGA
from dws.simulator.breaking.shapes import Machines, chips_of, each_of, room

_PENDING_OR_AHEAD = PENDING | AHEAD
_ALIVE = PENDING | AHEAD | OPEN


class CalendarAuditor:
    """Judges the events of reservations and series. `requests` and `excuses` are shared with the auditor of
    requests; `fleet` gives the fleet as events have told it."""

    def __init__(
        self,
        requests: Mapping[int, Told],
        excuses: Excuses,
        policy: PolicyOptions,
        fleet: Callable[[], Fleet],
    ) -> None:
        self.blocks: dict[int, Block] = {}
        self.cycles: dict[int, Cycle] = {}
        self.now = 0
        self._requests = requests
        self._excuses = excuses
        self._policy = policy
        self._fleet = fleet
        self._judges: dict[type, Callable[[Block, ev.Event, Any], None]] = {
            ev.ReservationApproved: self._approved,
            ev.ReservationDeclined: self._declined,
            ev.ReservationAmended: self._amended,
            ev.ReservationLocked: self._locked,
            ev.ReservationStarted: self._started,
            ev.ReservationDelivered: self._delivered,
            ev.ReservationDegraded: self._degraded,
            ev.ReservationRestored: self._restored,
            ev.ReservationReplaced: self._replaced,
            ev.ReservationUsed: self._used,
            ev.ReservationIdle: self._idle,
            ev.ReservationUnused: self._unused,
            ev.ReservationWarned: self._warned,
            ev.ReservationCancelled: self._cancelled,
            ev.ReservationClosing: self._closing,
            ev.ReservationClosed: self._closed,
            ev.ReservationDeleted: self._deleted,
        }

    def judge(self, event: ev.Event) -> None:
        """Take in an event of a reservation or a series. Raises Broken when it must not be."""
        self.now = event.at
        if event.subject_kind is ev.SubjectKind.SERIES:
            self._of_series(event)
            return
        if isinstance(event.body, ev.ReservationAsked):
            self._asked(event, event.body)
            return
        block = self.blocks.get(event.subject)
        if block is None:
            raise Broken(f"{event.kind} of reservation {event.subject}, which was never asked for")
        if block.is_over and not isinstance(event.body, ev.ReservationDeleted):
            raise Broken(f"reservation '{block.name}' is {block.phase}, and {event.kind} happened to it")
        self._judges[type(event.body)](block, event, event.body)

    def _must_be(self, block: Block, event: ev.Event, phases: frozenset[str]) -> None:
        if block.phase not in phases:
            raise Broken(f"{event.kind} happened to reservation '{block.name}', which is {block.phase}")

    def is_short(self, reservation: int) -> bool:
        """True while that one openly lacks hosts; or any one, where any would do."""
        if reservation == ANY_RESERVATION:
            return any(b.short for b in self.blocks.values())
        return reservation in self.blocks and self.blocks[reservation].short > 0

    # --- booking ------------------------------------------------------------------------------

    def _asked(self, event: ev.Event, body: ev.ReservationAsked) -> None:
        r = body.reservation
        if event.subject in self.blocks:
            raise Broken(f"reservation {event.subject} was asked for twice")
        block = Block(
            id=event.subject,
            name=r.name,
            project=r.project,
            series=r.series,
            asked=event.at,
            asked_at_seq=event.seq,
            phase="PENDING_APPROVAL" if self._needs_approval(event) else "APPROVED",
            window=r.window,
            pool=r.pool,
            zone=r.zone,
            shape=r.shape,
            topology=r.topology,
            count=r.count,
            within=r.within,
            terms=r.terms,
            lock_at=max(self.now, r.window.start - self._policy.reservation_lock_s),
            approve_by=r.approve_by,
            cancel_until=self._cancel_until(r.window.start),
            on_demand=r.on_demand,
        )
        if r.state.value != block.phase:
            raise Broken(f"reservation '{r.name}' was asked for by {event.actor} and is {r.state}")
        self._has_a_name_of_its_own(block)
        self._is_allowed(block, block.window)
        self._keeps_to_the_share(block)
        if block.series:
            self._is_an_occurrence(block)
        self.blocks[block.id] = block
        block.names.add(block.name)

    def _needs_approval(self, event: ev.Event) -> bool:
        return self._policy.reservation_approval == "approver" and event.actor != OLGA.name

    def _cancel_until(self, start: int) -> int:
        policy = self._policy
        last = start - max(policy.reservation_lock_s, policy.reservation_cancel_s)
        return last if policy.reservation_cancel != "never" and last > self.now else 0

    def _has_a_name_of_its_own(self, block: Block) -> None:
        for other in self.blocks.values():
            twin = (other.project, other.name) == (block.project, block.name)
            if twin and other is not block and not other.is_over:
                raise Broken(f"two living reservations are called '{block.name}'")

    def _is_allowed(self, block: Block, window: Span) -> None:
        """The window may be booked today, and the hosts are of one domain that is large enough."""
        policy, ahead = self._policy, window.start - self.now
        if block.on_demand and (ahead or block.phase != "APPROVED"):
            raise Broken(f"reservation '{block.name}' is for now and starts {ahead} s ahead, {block.phase}")
        if not block.on_demand and not policy.reservation_notice_s <= ahead <= policy.calendar_horizon_s:
            raise Broken(f"reservation '{block.name}' is booked {ahead} s ahead, which the policy forbids")
        self._has_allowed_length(block, window.length_s)
        pool = self._fleet().pool(block.pool)
        if pool.zone != block.zone or block.shape not in (s.name for s in pool.shapes):
            raise Broken(f"reservation '{block.name}' is booked in {block.zone}, its pool is not there")
        ask = Machines(shape=block.shape, count=block.count, each=each_of(pool, block.shape))
        if block.topology:
            ask = replace(ask, slices=block.count, chips=chips_of(block.topology))
        if block.count > room(pool, block.within, ask):
            raise Broken(f"reservation '{block.name}' is of {block.count} hosts, no domain has as many")

    def _has_allowed_length(self, block: Block, length: int) -> None:
        policy = self._policy
        if block.on_demand:
            if not 1 <= length <= OPEN_ENDED_S:
                raise Broken(f"reservation '{block.name}' is for now and lasts {length} s")
            return
        fixed = policy.reservation_lengths_s
        in_bounds = policy.reservation_min_s <= length <= policy.reservation_max_s
        if not in_bounds or (fixed and length not in fixed):
            raise Broken(f"reservation '{block.name}' lasts {length} s, which the policy forbids")

    def _keeps_to_the_share(self, block: Block) -> None:
        pool = self._fleet().pool(block.pool)
        own, most = self._slots_of(block), self._policy.calendar_share * len(pool.hosts) * pool.host_units
        others = [
            b
            for b in self.blocks.values()
            if b is not block and b.pool == block.pool and not b.is_closed and b.window.overlaps(block.window)
        ]
        for at in (block.window.start, *(b.window.start for b in others)):
            booked = sum(self._slots_of(b) for b in others if b.window.covers(at)) + own
            if block.window.covers(at) and booked > most + 1e-6:
                raise Broken(
                    f"reservation '{block.name}' makes {booked} slots of hosts of {block.pool} "
                    f"reserved at one instant, more than {most}, the share of them"
                )

    def _slots_of(self, block: Block) -> int:
        """How many slots of hosts it is of."""
        return block.count * block.slots_each(self._fleet().pool(block.pool))

    def _approved(self, block: Block, event: ev.Event, body: ev.ReservationApproved) -> None:
        del body
        self._must_be(block, event, PENDING)
        if event.actor != OLGA.name:
            raise Broken(f"reservation '{block.name}' was approved by {event.actor}")
        block.phase = "APPROVED"

    def _declined(self, block: Block, event: ev.Event, body: ev.ReservationDeclined) -> None:
        self._must_be(block, event, PENDING)
        if event.actor != OLGA.name and self.now < block.approve_by:
            raise Broken(f"reservation '{block.name}' was declined ('{body.cause}') although it could be")
        block.phase, block.short = "DECLINED", 0

    # --- changing -----------------------------------------------------------------------------

    def _amended(self, block: Block, event: ev.Event, body: ev.ReservationAmended) -> None:
        self._must_be(block, event, _ALIVE)
        is_open, before = block.phase in OPEN, block.window
        moves = (body.window, body.count) != (before, block.count)
        if moves or body.terms != block.terms:
            self._excuses.inside(block.id, event.seq)
        if not moves and (body.pool, body.zone) != (block.pool, block.zone):
            raise Broken(f"reservation '{block.name}' was put elsewhere by a change of something else")
        if moves and event.actor != OLGA.name and not block.may_be_moved(self._policy):
            raise Broken(f"reservation '{block.name}' is {block.phase} and was changed against the rules")
        if is_open and (body.pool, body.window.start) != (block.pool, before.start):
            raise Broken(f"reservation '{block.name}' was moved while it is open")
        block.name, block.terms = body.name, body.terms
        block.window, block.count, block.pool, block.zone = body.window, body.count, body.pool, body.zone
        block.names.add(block.name)
        self._has_a_name_of_its_own(block)
        block.approve_by = min(block.approve_by, block.window.start)
        if not moves:
            return
        self._keeps_to_the_share(block)
        if is_open:
            self._has_allowed_length(block, block.window.length_s)
            block.warned.clear()
            return
        self._is_allowed(block, block.window)
        block.lock_at = max(self.now, block.window.start - self._policy.reservation_lock_s)
        block.cancel_until = self._cancel_until(block.window.start)

    def _locked(self, block: Block, event: ev.Event, body: ev.ReservationLocked) -> None:
        del body
        self._must_be(block, event, frozenset({"APPROVED"}))
        if self.now < block.lock_at:
            raise Broken(f"reservation '{block.name}' was locked {block.lock_at - self.now} s too early")
        block.phase = "PROCURING"

    def _cancelled(self, block: Block, event: ev.Event, body: ev.ReservationCancelled) -> None:
        del body
        self._must_be(block, event, _PENDING_OR_AHEAD)
        if event.actor != OLGA.name and not block.may_be_cancelled(self.now, self._policy):
            raise Broken(f"reservation '{block.name}' was cancelled against the rules")
        block.phase, block.short = "CANCELLED", 0
        self._excuses.inside(block.id, event.seq)

    # --- open ---------------------------------------------------------------------------------

    def _started(self, block: Block, event: ev.Event, body: ev.ReservationStarted) -> None:
        del body
        self._must_be(block, event, AHEAD)
        late = self.now - block.window.start
        if late < 0 or (late > 0 and not self._excuses.was_away_at(block.window.start)):
            raise Broken(f"reservation '{block.name}' was opened {late} s after its start")
        block.phase, block.idle_since = "PROVISIONING", self.now

    def _delivered(self, block: Block, event: ev.Event, body: ev.ReservationDelivered) -> None:
        self._must_be(block, event, frozenset({"PROVISIONING"}))
        late = self.now - block.window.start
        if body.late_s != late:
            raise Broken(f"reservation '{block.name}' is {late} s late and says {body.late_s} s")
        if block.short:
            raise Broken(f"reservation '{block.name}' was called delivered and lacks {block.short} hosts")
        if late and not block.was_short and not self._excuses.was_away_at(block.window.start):
            raise Broken(f"reservation '{block.name}' was delivered {late} s late without a cause")
        block.phase = "FULFILLED"

    def _degraded(self, block: Block, event: ev.Event, body: ev.ReservationDegraded) -> None:
        self._must_be(block, event, _ALIVE)
        if not 0 < body.short <= block.count or not body.cause:
            raise Broken(f"reservation '{block.name}' lacks {body.short} hosts ('{body.cause}')")
        if not self._has_cause(block):
            raise Broken(f"reservation '{block.name}' lacks hosts ('{body.cause}') but nothing had happened")
        block.short, block.was_short = body.short, True
        self._excuses.inside(block.id, event.seq)

    def _restored(self, block: Block, event: ev.Event, body: ev.ReservationRestored) -> None:
        del body
        self._must_be(block, event, _ALIVE)
        if not block.short:
            raise Broken(f"reservation '{block.name}' lacked nothing and was restored")
        block.short = 0
        self._excuses.inside(block.id, event.seq)

    def _replaced(self, block: Block, event: ev.Event, body: ev.ReservationReplaced) -> None:
        del body
        self._must_be(block, event, _ALIVE)
        amended = self._excuses.since_inside(block.id, block.asked_at_seq)  # larger than it was
        if not amended and not self._has_cause(block):
            raise Broken(f"reservation '{block.name}' got other hosts but nothing had happened")
        self._excuses.inside(block.id, event.seq)

    def _has_cause(self, block: Block) -> bool:
        """True when there was trouble since it was asked for, or somebody's hosts are still not back."""
        not_back = any(b.phase == "ENDING" for b in self.blocks.values())
        not_back = not_back or any(t.phase == "ENDING" for t in self._requests.values())
        return not_back or self._excuses.since(block.asked_at_seq)

    def _used(self, block: Block, event: ev.Event, body: ev.ReservationUsed) -> None:
        del body
        self._must_be(block, event, OPEN)
        block.idle_since = 0

    def _idle(self, block: Block, event: ev.Event, body: ev.ReservationIdle) -> None:
        del body
        self._must_be(block, event, OPEN)
        block.idle_since = self.now

    def _unused(self, block: Block, event: ev.Event, body: ev.ReservationUnused) -> None:
        self._must_be(block, event, OPEN)
        if not block.idle_since or body.idle_s != self.now - block.idle_since:
            raise Broken(f"reservation '{block.name}' was called unused for {body.idle_s} s")

    def _warned(self, block: Block, event: ev.Event, body: ev.ReservationWarned) -> None:
        self._must_be(block, event, OPEN)
        if body.lead_s in block.warned or self.now < block.window.end - body.lead_s:
            raise Broken(f"reservation '{block.name}' was warned ({body.lead_s} s) twice or too early")
        block.warned.add(body.lead_s)

    def _closing(self, block: Block, event: ev.Event, body: ev.ReservationClosing) -> None:
        self._must_be(block, event, OPEN)
        unused_s = self.now - block.idle_since if block.idle_since else 0
        limit = self._policy.no_show_release_s
        is_no_show = limit > 0 and unused_s >= limit
        is_by_time = event.actor not in ("ann", "bob", OLGA.name)
        if is_by_time and self.now < block.window.end and not is_no_show:
            early = block.window.end - self.now
            raise Broken(f"reservation '{block.name}' was closed {early} s early ('{body.cause}')")
        block.phase, block.short = "ENDING", 0
        self._excuses.inside(block.id, event.seq)

    def _closed(self, block: Block, event: ev.Event, body: ev.ReservationClosed) -> None:
        del body
        self._must_be(block, event, OPEN | {"ENDING"})
        left = [t.name for t in self._requests.values() if t.inside == block.id and t.slots_held]
        if left:
            raise Broken(f"reservation '{block.name}' is called over while {left} hold hosts in it")
        block.phase = "ENDED"

    def _deleted(self, block: Block, event: ev.Event, body: ev.ReservationDeleted) -> None:
        del body
        if not block.is_over or block.deleted:
            raise Broken(f"{event.kind} happened to reservation '{block.name}', which is {block.phase}")
        block.deleted = True

    # --- what runs inside -----------------------------------------------------------------------

    def entered(self, told: Told, grant: Grant, slots: int, now: int) -> None:
        """A request starts on so many slots of hosts: may it run there? Called before it holds anything."""
        wanted, inside = told.demand.reservation, grant.reservation
        if wanted > 0 and inside != wanted:
            raise Broken(f"'{told.name}' names a reservation and was started outside it")
        if not inside:
            return
        block = self.blocks.get(inside)
        if block is None or block.phase not in OPEN:
            phase = "unknown" if block is None else block.phase
            raise Broken(f"'{told.name}' was started in a reservation that is {phase}")
        overheads = self._fleet().pool(grant.pool).overheads
        end = now + grant.duration_s + overheads.total_s
        if end > block.window.end:
            raise Broken(
                f"'{told.name}' was started in '{block.name}' and ends {end - block.window.end} s "
                "after its window"
            )
        asked = told.demand.alternatives[grant.alternative]
        if asked.duration_s == UNTIL_END and end != block.window.end:
            raise Broken(f"'{told.name}' was to run to the end of '{block.name}', and does not")
        if not wanted:
            if grant.duration_s + overheads.total_s > self._policy.lend_idle_s:
                raise Broken(f"'{told.name}' was started on hosts that are reserved for '{block.name}'")
            return
        self._is_within_the_terms(told, block, grant.duration_s, slots)

    def _is_within_the_terms(self, told: Told, block: Block, duration_s: int, slots: int) -> None:
        if told.demand.reservation == ANY_RESERVATION and block.terms.specific_only:
            raise Broken(f"'{told.name}' did not name '{block.name}', which must be named, and runs in it")
        allowed = block.part_of(told.project)
        if allowed is None:
            raise Broken(f"'{told.name}' was started in '{block.name}', which {told.project} has no part in")
        own = any(s.project == told.project and s.hosts_max for s in block.terms.shares)
        has = sum(
            t.slots_held
            for t in self._requests.values()
            if own and t.project == told.project and t.inside == block.id
        )
        each = block.slots_each(self._fleet().pool(block.pool))
        if has + slots > allowed * each:
            part = f"{allowed} x {each}"
            raise Broken(f"{told.project} has {has + slots} slots in '{block.name}', its part is {part}")
        most = block.terms.request_hosts_max
        if most and slots > most * each:
            part = f"{most} x {each}"
            raise Broken(f"'{told.name}' has {slots} slots in '{block.name}', a request may have {part}")
        longest = block.terms.request_run_max_s
        if longest and duration_s > longest:
            raise Broken(f"'{told.name}' runs {duration_s} s in '{block.name}', at most {longest} s may be")

    def latest_end(self, told: Told, now: int, ends_at: int) -> int:
        """When a run that was delivered now ends: as it would outside, or in time to clean up before the
        window of its reservation is over."""
        block = self.blocks.get(told.inside)
        if block is None:
            return ends_at
        after_s = self._fleet().pool(block.pool).overheads.after_run_s
        return max(now, min(ends_at, block.window.end - after_s))

    def extended(self, told: Told, ends_at: int, now: int) -> None:
        """A run is to end then: that, and cleaning up, is before the reservation's window is over."""
        block = self.blocks.get(told.inside)
        if block is None or told.held is None:
            return
        until = ends_at + self._fleet().pool(block.pool).overheads.after_run_s
        if until > block.window.end:
            over = until - block.window.end
            raise Broken(f"'{told.name}' is to hold hosts {over} s after the window of '{block.name}'")
        longest = block.terms.request_run_max_s
        if longest and told.demand.reservation and ends_at - told.held.delivered > longest:
            raise Broken(f"'{told.name}' was extended beyond what a run in '{block.name}' may last")
        if not told.demand.reservation and until - now > self._policy.lend_idle_s:
            raise Broken(f"'{told.name}' was extended on hosts that '{block.name}' only lends")

    # --- series -------------------------------------------------------------------------------

    def _of_series(self, event: ev.Event) -> None:
        body = event.body
        if isinstance(body, ev.SeriesBegun):
            twin = any(
                (c.project, c.name) == (body.series.project, body.series.name) and not c.is_over
                for c in self.cycles.values()
            )
            if twin or event.subject in self.cycles:
                raise Broken(f"two living series are called '{body.series.name}'")
            self.cycles[event.subject] = Cycle(
                id=event.subject,
                name=body.series.name,
                project=body.series.project,
                recurrence=body.series.recurrence,
                alternative=body.series.alternative,
                since=event.at,
            )
            return
        cycle = self.cycles.get(event.subject)
        if cycle is None or cycle.is_over:
            raise Broken(f"{event.kind} of series {event.subject}, which is over or never was")
        match body:
            case ev.SeriesAmended(series=changed):
                left_out = changed.recurrence.left_out - cycle.recurrence.left_out
                if not left_out:
                    kept = (b.window.end for b in self._members(cycle))
                    cycle.since = max(event.at, *kept, 0)
                    cycle.dealt.clear()
                cycle.recurrence, cycle.alternative = changed.recurrence, changed.alternative
            case ev.OccurrenceMissed(day=day, cause=cause):
                if not cause or day not in dict(cycle.occurrences()) or day in cycle.dealt:
                    raise Broken(f"'{cycle.name}' missed {day} ('{cause}')")
                cycle.dealt.add(day)
            case ev.SeriesEnded():
                cycle.is_over = True
                self._is_given_up(cycle, event)

    def _members(self, cycle: Cycle) -> list[Block]:
        of = (cycle.project, cycle.name)
        return [b for b in self.blocks.values() if (b.project, b.series) == of and not b.is_over]

    def _is_given_up(self, cycle: Cycle, event: ev.Event) -> None:
        if event.actor in ("ann", "bob", OLGA.name):
            left = [b.name for b in self._members(cycle) if b.may_be_cancelled(event.at, self._policy)]
            if left:
                raise Broken(f"series '{cycle.name}' was cancelled and {left} are still booked")
            return
        ahead = [d for d, span in cycle.occurrences() if span.start > event.at and d not in cycle.dealt]
        if ahead:
            raise Broken(f"series '{cycle.name}' is called over, and {ahead[0]} lies ahead")

    def _is_an_occurrence(self, block: Block) -> None:
        for cycle in self.cycles.values():
            if (cycle.project, cycle.name) != (block.project, block.series) or cycle.is_over:
                continue
            day = next((d for d, span in cycle.occurrences() if span == block.window), None)
            if day is None or day in cycle.dealt:
                raise Broken(f"'{block.name}' is no occurrence of '{cycle.name}', or its second one")
            cycle.dealt.add(day)
            return
        raise Broken(f"'{block.name}' is of series '{block.series}', which is not")
