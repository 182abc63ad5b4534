"""Invents commands about reservations and series, legal and illegal, and knows what each must be answered.

What the rules say is reckoned from the auditor's own model; whether there is room only where that is beyond
doubt: then a refusal is a fault as much as a wrong answer.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

from dws.engine.app import Engine
from dws.engine.commands import (
    AmendReservation,
    AmendSeries,
    PlanMaintenance,
    Repeat,
    Reserve,
    Seek,
    Submit,
)
from dws.engine.ports import ReservationQuery
from dws.model.access import Principal
from dws.model.booking import Booking, Stage
from dws.model.demand import OPEN_ENDED_S, UNTIL_END, Alternative, Demand
from dws.model.errors import (
    DwsError,
    FailedPrecondition,
    InvalidArgument,
    NeverFits,
    NoRoom,
    NotFound,
    PermissionDenied,
)
from dws.model.recurrence import EVERY_DAY, Recurrence
from dws.model.reservation import AtEnd, Share, Terms
from dws.model.time import HOUR, MINUTE, Span
from dws.model.topology import Fleet, Pool
from dws.planner.options import PolicyOptions
from dws.simulator.breaking.auditor import Auditor
from dws.simulator.breaking.block import AHEAD, GONE, OPEN, WINTER_OFFSETS_S, Block, Cycle
from dws.simulator.breaking.demands import a_slice, counted, is_number_of_chips
from dws.simulator.breaking.people import ANN, BOB, OLGA, USERS, VERA, Command
from dws.simulator.breaking.shapes import each_of, machines, room

LENGTHS: Final = (300, 1_200, HOUR, 2 * HOUR)
AHEAD_S: Final = (0, 0, 60, 600, 600, HOUR, 4 * HOUR)
OWNERS: Final = {"blue": ANN, "red": BOB}


class ReservationSource:
    """Draws commands about the calendar. `bookings` tells what is booked at present, `names` are numbered by
    the caller."""

    def __init__(
        self,
        dice: random.Random,
        auditor: Auditor,
        fleet: Callable[[], Fleet],
        policy: PolicyOptions,
        bookings: Callable[[], list[Booking]],
    ) -> None:
        self._dice = dice
        self._auditor = auditor
        self._calendar = auditor.calendar
        self._fleet = fleet
        self._policy = policy
        self._bookings = bookings
        self._number = 0
        self._kinds: tuple[tuple[int, Callable[[int], Command]], ...] = (
            (12, self._reserve),
            (2, self._reserve_now),
            (24, self._submit_inside),
            (10, self._amend),
            (4, self._cancel),
            (4, self._release),
            (5, self._decide),
            (2, self._delete),
            (3, self._repeat),
            (3, self._change_series),
            (3, self._book_what_is_advised),
            (3, self._maintain),
            (6, self._look),
            (4, self._nonsense),
        )

    def next(self, now: int) -> Command:
        """The next command at `now`."""
        self._number += 1
        ((_, draw),) = self._dice.choices(self._kinds, [weight for weight, _ in self._kinds])
        return draw(now)

    # --- booking ------------------------------------------------------------------------------

    def _reserve(self, now: int) -> Command:
        dice = self._dice
        who, project = dice.choice(USERS)
        pool, kind = self._machines()
        command = Reserve(
            project=project,
            name=f"b{self._number}",
            alternative=replace(kind, duration_s=self._length()),
            start=now + self._ahead_s(),
            terms=self._terms(),
            call_id=dice.choice(("", f"book-{self._number}")),
            dry_run=dice.random() < 0.1,
        )
        window = Span(command.start, command.start + command.alternative.duration_s)
        is_sure = not command.dry_run and self._surely_fits(pool, kind, window, now)
        return Command(
            words=f"{who.name} books b{self._number}: {kind.count} {kind.shape} of {pool.name} in "
            f"{command.start - now} s for {window.length_s} s",
            act=lambda engine: engine.reserve(who, command),
            refusal=None if is_sure else NoRoom,
            may_refuse=not is_sure,
            reads=command.dry_run,
            call_id="" if command.dry_run else command.call_id,
            makes=0 if command.dry_run else 1,
        )

    def _reserve_now(self, now: int) -> Command:
        """From now on, mostly until it is given back."""
        dice = self._dice
        who, project = dice.choice(USERS)
        pool, kind = self._machines()
        kind = replace(kind, duration_s=dice.choice((OPEN_ENDED_S, OPEN_ENDED_S, 1_800)))
        command = Reserve(
            project=project,
            name=f"b{self._number}",
            alternative=kind,
            terms=self._terms(),
            on_demand=True,
            call_id=dice.choice(("", f"book-{self._number}")),
        )
        is_sure = self._surely_fits(pool, kind, Span(now, now + kind.duration_s), now)
        is_asked = self._policy.reservation_approval == "approver" and who is not OLGA
        return Command(
            words=f"{who.name} books b{self._number}: {kind.count} {kind.shape} of {pool.name} from now on "
            f"for {kind.duration_s} s",
            act=lambda engine: engine.reserve(who, command),
            refusal=PermissionDenied if is_asked else None if is_sure else NoRoom,
            may_refuse=not is_asked and not is_sure,
            call_id="" if is_asked else command.call_id,
            makes=0 if is_asked else 1,
        )

    def _machines(self) -> tuple[Pool, Alternative]:
        """Some machines that the empty pool has, and sometimes all of them."""
        dice = self._dice
        pool = dice.choice(self._fleet().pools)
        one = Alternative(shape=dice.choice(pool.shapes).name, count=1, duration_s=60)
        if pool.topology and dice.random() < 0.5:
            one = a_slice(dice, pool, one)
        kind = counted(dice, pool, one)
        ask = machines(kind, pool)
        assert ask is not None, f"{pool.name} serves {kind}"
        is_number = ask.slices and is_number_of_chips(kind)
        most = kind.count if is_number else room(pool, kind.within, ask)
        return pool, replace(kind, count=dice.choice((kind.count, kind.count, most)))

    def _length(self) -> int:
        return self._dice.choice(self._policy.reservation_lengths_s or LENGTHS)

    def _ahead_s(self) -> int:
        policy = self._policy
        ahead = self._dice.choice(AHEAD_S)
        return min(max(ahead, policy.reservation_notice_s), policy.calendar_horizon_s)

    def _terms(self) -> Terms:
        dice = self._dice
        shares: tuple[Share, ...] = ()
        if dice.random() < 0.5:
            shares = tuple(
                Share(project=project, hosts_max=dice.choice((0, 1, 1, 2)))
                for project in dice.sample(("blue", "red"), dice.randint(1, 2))
            )
        return Terms(
            shares=shares,
            specific_only=dice.random() < 0.5,
            at_end=dice.choice(tuple(AtEnd)),
            request_hosts_max=dice.choice((0, 0, 0, 1, 2)),
            request_run_max_s=dice.choice((0, 0, 0, 600)),
        )

    def _surely_fits(self, pool: Pool, kind: Alternative, window: Span, now: int) -> bool:
        """True when there is room even if everything that overlaps the window were there all the time."""
        if kind.within is not None or pool.topology:
            return False
        left = [cell.size for cell in pool.cells]
        for booking in self._bookings():
            if booking.pool == pool.name and not booking.parent and _is_there(booking, window, now):
                for part in booking.parts:
                    left[part.cell] -= part.count
        states = self._auditor.host_states
        for place, host in enumerate(pool.hosts):
            if states.get((pool.name, host), "READY") != "READY":
                left[pool.cell_of(place * pool.host_units)] -= pool.host_units
        each = each_of(pool, kind.shape)
        booked = sum(
            b.count * b.slots_each(pool)
            for b in self._calendar.blocks.values()
            if b.pool == pool.name and not b.is_over and b.window.overlaps(window)
        )
        share = self._policy.calendar_share * len(pool.hosts) * pool.host_units
        has_room = sum(max(0, units) // each for units in left) >= kind.count
        return has_room and booked + kind.count * each <= share

    def _book_what_is_advised(self, now: int) -> Command:
        """What is advised can be booked as it is."""
        who, project = self._dice.choice(USERS)
        pool, kind = self._machines()
        length = self._length()
        name, start = f"b{self._number}", now + self._policy.reservation_notice_s
        kind = replace(kind, duration_s=length)
        seek = Seek(
            project=project,
            alternative=kind,
            start_from=start,
            start_to=min(start + 4 * HOUR, now + self._policy.calendar_horizon_s),
            min_s=length,
            max_s=length,
        )

        def act(engine: Engine) -> object:
            options = engine.advise(who, seek).options
            if not options:
                return ()
            best = self._dice.choice(options)
            return engine.reserve(
                who, Reserve(project=project, name=name, alternative=kind, start=best.window.start)
            )

        return Command(words=f"{who.name} books {name} as advised: {kind.count} of {pool.name}", act=act)

    # --- running inside -------------------------------------------------------------------------

    def _submit_inside(self, now: int) -> Command:
        dice = self._dice
        who, project = dice.choice(USERS)
        block = self._some_block()
        if block is None or block.deleted:
            return self._reserve(now)
        block = self._newest(block)
        kind, each = self._kind_inside(block)
        count = dice.randint(1, block.count * each + dice.choice((0, 0, 0, 1)))
        duration = dice.choice((UNTIL_END, UNTIL_END, 60, 300, 1_800))
        array = dice.choice((0, 0, 0, 2, 3))
        command = Submit(
            project=project,
            name=f"i{self._number}",
            demand=Demand(
                alternatives=(replace(kind, count=count, duration_s=duration),),
                not_before=dice.choice((0, 0, 0, max(now, block.window.start) + 60)),
            ),
            wait_s=dice.choice((None, None, None, 600)),
            array=array,
            reservation=block.name if project == block.project else f"{block.project}/{block.name}",
            call_id=dice.choice(("", f"in-{self._number}")),
        )
        refusal = self._answer_inside(block, project, count, duration, each)
        return Command(
            words=f"{who.name} submits i{self._number} in '{block.name}' ({block.phase}): {count} "
            f"{kind.shape} for {duration} s" + (f" x {array}" if array else ""),
            act=lambda engine: engine.submit(who, command),
            refusal=refusal,
            call_id=command.call_id if refusal is None else "",
            makes=(array or 1) if refusal is None else 0,
        )

    def _kind_inside(self, block: Block) -> tuple[Alternative, int]:
        """What may run inside, and how many of it each machine, or slice, of the reservation has room for."""
        pool = self._fleet().pool(block.pool)
        own = Alternative(shape=block.shape, topology=block.topology, count=1, duration_s=60)
        if block.topology:
            return own, 1
        most = each_of(pool, block.shape)
        served = [s.name for s in pool.shapes if each_of(pool, s.name) <= most]
        shape = self._dice.choice((block.shape, self._dice.choice(served)))
        return replace(own, shape=shape), most // each_of(pool, shape)

    def _newest(self, block: Block) -> Block:
        """The one that a name means."""
        same = [
            b
            for b in self._calendar.blocks.values()
            if (b.project, b.name) == (block.project, block.name) and not b.deleted
        ]
        return max(same, key=lambda b: b.id)

    def _answer_inside(
        self, block: Block, project: str, count: int, duration: int, each: int = 1
    ) -> type[DwsError] | None:
        """What must be answered to who asks for so many machines, of which `each` fit in one of its own."""
        part = block.part_of(project)
        if part is None and project != block.project:
            return PermissionDenied
        if block.is_closed:
            return FailedPrecondition
        assert part is not None, "an owner has a part"
        overheads = self._fleet().pool(block.pool).overheads
        most = block.window.length_s - overheads.total_s
        limit = min(part, block.terms.request_hosts_max or part)
        longest = block.terms.request_run_max_s
        lasts = duration or max(1, most)
        too_long = lasts > most or (longest and lasts > longest)
        return NeverFits if count > limit * each or too_long else None

    # --- changing one's mind --------------------------------------------------------------------

    def _some_block(self) -> Block | None:
        """One that is not put away, more likely one that is not over."""
        every = [b for b in self._calendar.blocks.values() if not b.deleted]
        living = [b for b in every if not b.is_over]
        if living and self._dice.random() < 0.85:
            every = living
        return self._dice.choice(every) if every else None

    def _asker(self, block: Block) -> Principal:
        return self._dice.choice((OWNERS[block.project], OWNERS[block.project], OLGA))

    def _amend(self, now: int) -> Command:
        dice = self._dice
        block = self._some_block()
        if block is None:
            return self._reserve(now)
        who, force = self._asker(block), dice.random() < 0.3
        what = dice.choice(("count", "count", "end", "end", "move", "name", "terms", "text"))
        window, count = block.window, block.count
        change = AmendReservation(
            project=block.project,
            name=str(block.id),
            force=force,
            dry_run=dice.random() < 0.1,
            call_id=dice.choice(("", f"change-{self._number}")),
        )
        match what:
            case "count":
                count = max(0, count + dice.choice((-2, -1, -1, 1, 1, 2)))
                change = replace(change, count=count)
            case "end":
                end = window.start + self._length() if dice.random() < 0.5 else window.end + 300
                window = Span(window.start, max(window.start, end))
                change = replace(change, end=end)
            case "move":
                start = now + self._ahead_s()
                window = Span(start, start + window.length_s)
                change = replace(change, start=start, end=window.end)
            case "name":
                change = replace(change, new_name=f"n{self._number}")
            case "terms":
                change = replace(change, terms=self._terms())
            case _:
                change = replace(change, description="changed")
        refusal, may = self._answer_amend(block, who, window, count, now, forced=force and who is OLGA)
        return Command(
            words=f"{who.name} amends {what} of '{block.name}' ({block.phase})",
            act=lambda engine: engine.amend_reservation(who, change),
            refusal=refusal,
            also=(FailedPrecondition,) if may else (),
            may_refuse=may,
            reads=change.dry_run,
            call_id="" if change.dry_run or refusal else change.call_id,
        )

    def _answer_amend(
        self, block: Block, who: Principal, window: Span, count: int, now: int, *, forced: bool
    ) -> tuple[type[DwsError] | None, bool]:
        """The error that it must get, and whether it may succeed all the same."""
        if block.is_closed:
            return FailedPrecondition, False
        if (window, count) == (block.window, block.count):
            return None, False
        if not forced and not block.may_be_moved(self._policy):
            return FailedPrecondition, False
        if count < 1:
            return InvalidArgument, False
        if block.phase in OPEN and window.start != block.window.start:
            return FailedPrecondition, False
        if not self._is_allowed(block, window, now):
            return InvalidArgument, False
        grows = count > block.count or not block.window.contains(window)
        approves = self._policy.reservation_approval == "approver" and who is not OLGA
        if grows and approves and block.phase != "PENDING_APPROVAL":
            return PermissionDenied, False
        return NoRoom, True

    def _is_allowed(self, block: Block, window: Span, now: int) -> bool:
        policy, ahead = self._policy, window.start - now
        if window.end <= now:
            return False
        if block.on_demand:
            return 1 <= window.length_s <= OPEN_ENDED_S
        if block.phase not in OPEN and not policy.reservation_notice_s <= ahead <= policy.calendar_horizon_s:
            return False
        fixed = policy.reservation_lengths_s
        if fixed and window.length_s not in fixed:
            return False
        return policy.reservation_min_s <= window.length_s <= policy.reservation_max_s

    def _cancel(self, now: int) -> Command:
        block = self._some_block()
        if block is None:
            return self._reserve(now)
        who, force = self._asker(block), self._dice.random() < 0.3
        forced = force and who is OLGA and block.phase in AHEAD
        legal = forced or block.may_be_cancelled(now, self._policy)
        return Command(
            words=f"{who.name} cancels '{block.name}' ({block.phase})",
            act=lambda e: e.cancel_reservation(who, block.project, str(block.id), force=force),
            refusal=None if legal else FailedPrecondition,
        )

    def _release(self, now: int) -> Command:
        block = self._some_block()
        if block is None:
            return self._reserve(now)
        who = self._asker(block)
        return Command(
            words=f"{who.name} releases '{block.name}' ({block.phase})",
            act=lambda engine: engine.release_reservation(who, block.project, str(block.id)),
            refusal=None if block.phase in OPEN else FailedPrecondition,
        )

    def _delete(self, now: int) -> Command:
        block = self._some_block()
        if block is None:
            return self._reserve(now)
        return Command(
            words=f"olga deletes '{block.name}' ({block.phase})",
            act=lambda engine: engine.delete_reservation(OLGA, block.project, str(block.id)),
            refusal=None if block.phase in GONE else FailedPrecondition,
        )

    def _decide(self, now: int) -> Command:
        """An operator says yes or no to one that waits for approval, where there is one."""
        pending = [b for b in self._calendar.blocks.values() if b.phase == "PENDING_APPROVAL"]
        block = self._dice.choice(pending) if pending else self._some_block()
        if block is None:
            return self._reserve(now)
        yes = self._dice.random() < 0.7

        def act(engine: Engine) -> object:
            if yes:
                return engine.approve_reservation(OLGA, block.project, str(block.id))
            return engine.decline_reservation(OLGA, block.project, str(block.id), "no")

        return Command(
            words=f"olga {'approves' if yes else 'declines'} '{block.name}' ({block.phase})",
            act=act,
            refusal=None if block.phase == "PENDING_APPROVAL" else FailedPrecondition,
        )

    # --- series ---------------------------------------------------------------------------------

    def _recurrence(self, now: int) -> Recurrence:
        """Every day at some minutes from now, on the clocks of some zone."""
        zone = self._dice.choice(tuple(WINTER_OFFSETS_S))
        at = now + self._policy.reservation_notice_s + self._dice.choice((60, 600, HOUR))
        wall = datetime.fromtimestamp(-(-at // MINUTE) * MINUTE + WINTER_OFFSETS_S[zone], UTC)
        return Recurrence(
            days=EVERY_DAY,
            start=wall.time(),
            zone=zone,
            first=wall.date(),
            length_s=self._length(),
            count=self._dice.choice((1, 2, 2, 3)),
        )

    def _repeat(self, now: int) -> Command:
        dice = self._dice
        who, project = dice.choice(USERS)
        pool, kind = self._machines()
        command = Repeat(
            project=project,
            name=f"s{self._number}",
            alternative=kind,
            recurrence=self._recurrence(now),
            terms=self._terms(),
            may_miss=dice.random() < 0.5,
            call_id=dice.choice(("", f"repeat-{self._number}")),
        )
        return Command(
            words=f"{who.name} begins series {command.name}: {kind.count} of {pool.name}, "
            f"{command.recurrence}",
            act=lambda engine: engine.repeat(who, command),
            refusal=None if command.may_miss else NoRoom,
            may_refuse=not command.may_miss,
            call_id=command.call_id,
        )

    def _change_series(self, now: int) -> Command:
        cycles = list(self._calendar.cycles.values())
        if not cycles:
            return self._repeat(now)
        cycle = self._dice.choice(cycles)
        who = self._dice.choice((OWNERS[cycle.project], OLGA))
        draw = self._dice.choice((self._amend_series, self._leave_out, self._cancel_series))
        command = draw(cycle, who, now)
        return replace(command, refusal=FailedPrecondition, may_refuse=False) if cycle.is_over else command

    def _amend_series(self, cycle: Cycle, who: Principal, now: int) -> Command:
        dice = self._dice
        may_miss = dice.random() < 0.5
        command = AmendSeries(project=cycle.project, name=str(cycle.id), may_miss=may_miss)
        what = dice.choice(("hours", "hosts", "terms"))
        match what:
            case "hours":
                command = replace(command, recurrence=self._recurrence(now))
            case "hosts":
                count = max(1, cycle.alternative.count + dice.choice((-1, 1)))
                command = replace(command, alternative=replace(cycle.alternative, count=count))
            case _:
                command = replace(command, terms=self._terms())
        return Command(
            words=f"{who.name} amends {what} of series {cycle.name}",
            act=lambda engine: engine.amend_series(who, command),
            refusal=None if may_miss else NoRoom,
            may_refuse=not may_miss,
        )

    def _leave_out(self, cycle: Cycle, who: Principal, now: int) -> Command:
        ahead = [(day, span) for day, span in cycle.occurrences() if span.start >= now]
        if not ahead:
            return self._cancel_series(cycle, who, now)
        day, _ = self._dice.choice(ahead)
        return Command(
            words=f"{who.name} leaves {day} out of series {cycle.name}",
            act=lambda engine: engine.leave_out(who, cycle.project, str(cycle.id), day),
            refusal=FailedPrecondition,
            may_refuse=True,
        )

    def _cancel_series(self, cycle: Cycle, who: Principal, now: int) -> Command:
        del now
        return Command(
            words=f"{who.name} cancels series {cycle.name}",
            act=lambda engine: engine.cancel_series(who, cycle.project, str(cycle.id)),
        )

    # --- maintenance ------------------------------------------------------------------------------

    def _maintain(self, now: int) -> Command:
        """Plan a window, which may be refused when it touches somebody and is not forced; or end one."""
        dice = self._dice
        if dice.random() < 0.3:
            return Command(words="olga ends the maintenance that begins first", act=_end_maintenance)
        pool = dice.choice(self._fleet().pools)
        start = now + dice.choice((0, 300, 1_800))
        command = PlanMaintenance(
            name=f"m{self._number}",
            hosts=tuple(dice.sample(pool.hosts, min(len(pool.hosts), dice.choice((1, 1, 2))))),
            start=start,
            end=start + dice.choice((300, 1_800)),
            force=dice.random() < 0.5,
            confirm=True,
        )
        return Command(
            words=f"olga plans maintenance of {', '.join(command.hosts)} in {start - now} s for "
            f"{command.end - start} s",
            act=lambda engine: engine.plan_maintenance(OLGA, command),
            refusal=None if command.force else FailedPrecondition,
            may_refuse=not command.force,
        )

    # --- looking, and what must not be ------------------------------------------------------------

    def _look(self, now: int) -> Command:
        ways: list[Command] = [
            Command(
                words="list reservations",
                act=lambda e: e.list_reservations(ANN, ReservationQuery()),
                reads=True,
            ),
            Command(words="list series", act=lambda e: e.list_series(OLGA), reads=True),
            Command(words="look at what is booked", act=lambda e: e.booked(BOB, since=now), reads=True),
            Command(words="look at maintenance", act=lambda e: e.maintenance(BOB), reads=True),
        ]
        block = self._some_block()
        if block is not None:
            ways.append(
                Command(
                    words=f"look at '{block.name}'",
                    act=lambda e: e.get_reservation(OLGA, block.project, str(block.id)),
                    reads=True,
                )
            )
            ways.append(self._quote_inside(block))
        return self._dice.choice(ways)

    def _quote_inside(self, block: Block) -> Command:
        block = self._newest(block)
        one = Alternative(shape=block.shape, topology=block.topology, count=1, duration_s=UNTIL_END)
        demand = Demand(alternatives=(one,))
        return Command(
            words=f"olga asks for a quote in '{block.name}' ({block.phase})",
            act=lambda e: e.quote(OLGA, block.project, demand, reservation=block.name),
            refusal=self._answer_inside(block, block.project, 1, UNTIL_END),
            reads=True,
        )

    def _nonsense(self, now: int) -> Command:
        pool = self._dice.choice(self._fleet().pools)
        ahead = self._policy.reservation_notice_s
        good = Reserve(
            project="blue",
            name="nonsense",
            alternative=Alternative(shape=pool.shape.name, count=1, duration_s=self._length()),
            start=now + ahead,
        )
        kind = good.alternative
        wrong: list[tuple[str, Principal, Reserve, type[DwsError]]] = [
            ("as a viewer", VERA, good, PermissionDenied),
            ("into another project", BOB, good, PermissionDenied),
            ("in the past", ANN, replace(good, start=now - 1_000), InvalidArgument),
            (
                "beyond the horizon",
                ANN,
                replace(good, start=now + self._policy.calendar_horizon_s + 1),
                InvalidArgument,
            ),
            ("no time at all", ANN, replace(good, alternative=replace(kind, duration_s=1)), InvalidArgument),
            ("in no zone", ANN, replace(good, time_zone="Moon/Base"), InvalidArgument),
            ("more than there is", ANN, replace(good, alternative=replace(kind, count=99)), NoRoom),
        ]
        living = [b for b in self._calendar.blocks.values() if not b.is_over]
        words, who, command, refusal = self._dice.choice(wrong)
        ways = [
            Command(
                words=f"{who.name} books {words}",
                act=lambda engine: engine.reserve(who, command),
                refusal=refusal,
            ),
            Command(
                words="olga cancels a reservation that is not",
                act=lambda engine: engine.cancel_reservation(OLGA, "blue", "atlantis"),
                refusal=NotFound,
            ),
        ]
        if living:
            block = self._dice.choice(living)
            ways.append(
                Command(
                    words=f"ann approves '{block.name}'",
                    act=lambda engine: engine.approve_reservation(ANN, block.project, str(block.id)),
                    refusal=PermissionDenied,
                )
            )
        return self._dice.choice(ways)


def _end_maintenance(engine: Engine) -> None:
    for window in engine.maintenance(OLGA)[:1]:
        engine.cancel_maintenance(OLGA, window.name)


def _is_there(booking: Booking, window: Span, now: int) -> bool:
    """True when it overlaps the window, or should be over and is not."""
    return booking.span.overlaps(window) or (booking.stage is Stage.LIVE and booking.span.end <= now)
