"""The auditor notices: each test breaks the scheduler in one deliberate way, and it must be found out.

What is broken is the product alone, by patching; the auditor's own model is left as it is. A sabotage
counts as caught when one of a few seeds ends with the words that name it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any

import pytest

from dws.backends.simulated.backend import SimulatedBackend
from dws.engine import executing, instances, planning
from dws.engine.app import Engine
from dws.engine.books import Books
from dws.engine.ports import Delivery, DeliveryState
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.booking import Stage
from dws.model.demand import Demand
from dws.model.errors import DwsError
from dws.model.evolve import evolve
from dws.model.request import CapacityRequest, EndReason
from dws.model.time import Span
from dws.model.work import WorkKind
from dws.planner import backfill
from dws.planner.calendar import PoolCalendar
from dws.planner.plan import Book, Decision, Move, Placement, Plan
from dws.planner.snapshot import FleetSnapshot
from dws.simulator import breaking
from dws.store import memory
from dws.store.memory import MemoryReader, MemoryTransaction
from dws.store.tables import Tables

Patch = pytest.MonkeyPatch
SEEDS = range(8)


def caught(*words: str, seeds: Iterable[int] = SEEDS) -> breaking.Outcome:
    """The first outcome whose fault says one of these things; fails when no seed comes to that."""
    faults = []
    for seed in seeds:
        outcome = breaking.run(seed)
        if not outcome.ok and any(re.search(word, outcome.fault) for word in words):
            return outcome
        faults.append(outcome.fault)
    pytest.fail(f"not caught; found instead: {sorted(set(faults))}")


# --- booked twice -----------------------------------------------------------------------------


def _blind_to(patch: Patch, *stages: Stage) -> None:
    """Planner and store see no bookings of these stages: neither the table, nor the units, nor the peak."""
    see, count = Books.snapshot, MemoryReader.peak

    def snapshot(books: Books) -> FleetSnapshot:
        seen = see(books)
        calendars = {pool.name: PoolCalendar(pool) for pool in seen.fleet.pools}
        for booking in seen.bookings.values():
            if booking.stage not in stages and booking.pool in calendars:
                calendars[booking.pool].add(booking)
        return replace(seen, calendars=calendars)

    def peak(reader: MemoryReader, pool: str, cell: int, start: int, end: int) -> int:
        fleet = reader.fleet()
        assert fleet is not None
        return min(fleet.pool(pool).cells[cell].size, count(reader, pool, cell, start, end))

    def put_booking(tx: MemoryTransaction, booking: Any) -> None:
        tx._exchange_booking(tx._tables.bookings.get(booking.id), booking)

    patch.setattr(Books, "snapshot", snapshot)
    patch.setattr(MemoryReader, "peak", peak)
    patch.setattr(MemoryTransaction, "put_booking", put_booking)


def test_a_host_given_to_two_is_noticed(monkeypatch: Patch) -> None:
    """Planner and store could be wrong together, and two gangs run on one host."""
    _blind_to(monkeypatch, Stage.LIVE)
    caught(r"was given to '.*' while '.*' holds it")


def test_a_promise_of_what_is_promised_already_is_noticed(monkeypatch: Patch) -> None:
    """Two promises could be made of the same hosts, and one of them broken on the day."""
    _blind_to(monkeypatch, Stage.FIRM)
    caught(r"\d+ hosts are booked at one instant, there are \d+")


# --- promises ---------------------------------------------------------------------------------


def _each_pass_also(patch: Patch, decide: Callable[[CapacityRequest, Placement], Decision]) -> None:
    """Every pass does something to one of the promises it would have left alone."""
    make = backfill.plan

    def plan(snapshot: FleetSnapshot, *args: Any) -> Plan:
        made = make(snapshot, *args)
        busy = {d.request for d in made.decisions}
        left = [r for r in snapshot.queue if r.booking is not None and r.id not in busy]
        more = tuple(decide(r, _later(snapshot, r)) for r in left[:1])
        return replace(made, decisions=made.decisions + more)

    patch.setattr(planning.backfill, "plan", plan)


def _later(snapshot: FleetSnapshot, request: CapacityRequest) -> Placement:
    booking = snapshot.bookings[request.booking or 0]
    span = Span(booking.span.start + 1, booking.span.end + 1)
    return Placement(alternative=0, pool=booking.pool, span=span, parts=booking.parts, duration_s=60)


def test_a_promise_a_second_later_is_noticed(monkeypatch: Patch) -> None:
    """A promise could creep into the future, second by second."""
    _each_pass_also(monkeypatch, lambda r, later: Book(request=r.id, placement=later))
    caught(r"moved 1 s later without a cause")


def test_a_promise_moved_under_a_pretext_is_noticed(monkeypatch: Patch) -> None:
    """A promise could be moved "because capacity was lost" when nothing was."""
    _each_pass_also(
        monkeypatch, lambda r, later: Move(request=r.id, placement=later, cause="capacity was lost")
    )
    caught(r"was moved \('capacity was lost'\) but nothing had happened")


def test_a_start_before_the_back_off_is_over_is_noticed(monkeypatch: Patch) -> None:
    """An attempt that failed could be repeated at once, again and again."""
    see = Books.snapshot

    def snapshot(books: Books) -> FleetSnapshot:
        seen = see(books)
        return replace(seen, queue=tuple(evolve(r, not_again_before=0) for r in seen.queue))

    monkeypatch.setattr(Books, "snapshot", snapshot)
    caught(r"tried again \d+ s too early")


# --- gangs ------------------------------------------------------------------------------------


def test_a_gang_delivered_in_part_is_noticed(monkeypatch: Patch) -> None:
    """A gang could be called delivered, and billed, while some of it is still booting."""

    def at_once(w: Write, request: CapacityRequest) -> CapacityRequest:
        grant = instances.granted(request)
        if request.state != "PROVISIONING":
            return request
        return w.apply(request, ev.Delivered(ends_at=w.now + grant.duration_s))

    monkeypatch.setattr(instances, "_deliver_if_whole", at_once)
    caught(r"was called delivered while ranks \[.+\] are not up")


def test_a_gang_left_with_a_hole_is_noticed(monkeypatch: Patch) -> None:
    """A gang that lost an instance could run on as a rump and be billed for it."""
    end = instances.ended

    def ended(w: Write, request: CapacityRequest, why: EndReason, *args: Any, **more: Any) -> CapacityRequest:
        return request if why is EndReason.HOST_LOST else end(w, request, why, *args, **more)

    monkeypatch.setattr(instances, "ended", ended)
    caught(r"is active without its ranks", r"is active and holds nothing")


@pytest.mark.parametrize(
    ("twice", "words"),
    [
        (ev.InstancesRan, "came up twice"),
        (ev.Delivered, "Delivered happened to '.*', which is ACTIVE"),
        (ev.Started, "Started happened to '.*', which is PROVISIONING"),
        (ev.InstancesReleased, "which it did not hold"),
    ],
)
def test_what_happens_twice_is_noticed(monkeypatch: Patch, twice: type, words: str) -> None:
    """An instance could be delivered, started or given back twice."""
    append = MemoryTransaction.append

    def again(tx: MemoryTransaction, events: Iterable[ev.NewEvent]) -> list[ev.Event]:
        told = [copy for event in events for copy in [event] * (2 if isinstance(event.body, twice) else 1)]
        return append(tx, told)

    monkeypatch.setattr(MemoryTransaction, "append", again)
    caught(words)


# --- giving back ------------------------------------------------------------------------------


def test_a_release_nobody_was_told_of_is_noticed(monkeypatch: Patch) -> None:
    """Programs could run on for ever on hosts that the ledger calls free."""
    call = executing.Executor._call

    def lost(executor: executing.Executor, job: Any, order: Any) -> Any:
        if job.item.kind is WorkKind.RELEASE:
            return Delivery(state=DeliveryState.DELIVERED)
        return call(executor, job, order)

    monkeypatch.setattr(executing.Executor, "_call", lost)
    caught(r"runs on .* and nobody holds it")


def test_an_instance_that_was_never_ordered_is_noticed(monkeypatch: Patch) -> None:
    """A gang could be called running, and billed, that the backend was never asked for."""
    monkeypatch.setattr(
        SimulatedBackend,
        "provision",
        lambda backend, order: Delivery(
            state=DeliveryState.DELIVERED, addresses={i.rank: i.host for i in order.instances}
        ),
    )
    caught(r"is called running, and it is not there")


# --- use --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("early", "late"), [(0, 1), (0, -1), (1, 0)])
def test_a_second_billed_wrongly_is_noticed(monkeypatch: Patch, early: int, late: int) -> None:
    """People could pay for a second they did not have, or have one for nothing."""
    record = instances.usage_record

    def wrong(request: Any, pool: Any, instance: Any, start: int, end: int, **more: Any) -> Any:
        return record(request, pool, instance, start - early, end + late, **more)

    monkeypatch.setattr(instances, "usage_record", wrong)
    caught(r"was billed \[.*\], it used")


def test_a_use_never_billed_is_noticed(monkeypatch: Patch) -> None:
    """An instance given back early could be left off the bill."""
    part_released = instances.part_released

    def free_of_charge(w: Write, request: CapacityRequest, ranks: tuple[int, ...]) -> CapacityRequest:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(instances, "_meter", lambda *args: None)
            return part_released(w, request, ranks)

    monkeypatch.setattr(instances, "part_released", free_of_charge)
    caught(r"was billed \[.*\], it used", seeds=range(24))


# --- restarts and records ---------------------------------------------------------------------


def test_a_request_forgotten_at_a_restart_is_noticed(monkeypatch: Patch) -> None:
    """A server that comes back could have forgotten who waits."""
    load = Books.load

    def forgetful(books: Books, reader: Any) -> None:
        load(books, reader)
        if books.waiting:
            books.waiting.pop(next(iter(books.waiting)))

    monkeypatch.setattr(Books, "load", forgetful)
    caught(r"books and store disagree on")


def test_a_row_lost_is_noticed(monkeypatch: Patch) -> None:
    """A request could vanish from the store without a word."""
    exchange = Tables.exchange_request

    def lossy(tables: Tables, old: Any, new: Any) -> None:
        exchange(tables, old, new)
        if new is not None and new.state == "BOOKED":
            del tables.requests[new.id]

    monkeypatch.setattr(Tables, "exchange_request", lossy)
    caught(r"the row of '.*' is gone")


def test_a_gap_in_the_story_is_noticed(monkeypatch: Patch) -> None:
    """A follower could miss an event and never know."""
    tell = MemoryReader.events

    def events(reader: MemoryReader, **query: Any) -> list[ev.Event]:
        return [event for event in tell(reader, **query) if event.seq != 40]

    monkeypatch.setattr(MemoryReader, "events", events)
    outcome = caught(r"event 41 follows event 39")
    assert "#39" in outcome.text()


@pytest.mark.parametrize("change", ["a label", "a due time", "an event"])
def test_a_refusal_that_changed_something_is_noticed(monkeypatch: Patch, change: str) -> None:
    """A command could be refused and carried out all the same."""
    extend = Engine.extend

    def half_done(engine: Engine, *args: Any) -> Any:
        try:
            return extend(engine, *args)
        except DwsError:
            engine.committer.write(lambda w: _meddle(w, change), actor="nobody")
            raise

    monkeypatch.setattr(Engine, "extend", half_done)
    caught(r"was refused, and yet something changed")


def _meddle(w: Write, change: str) -> None:
    if change == "an event":
        w.record(ev.SubjectKind.SYSTEM, 0, ev.Noted(what="hm", facts={}))
    for request in (*w.books.waiting.values(), *w.books.holding.values()):
        if change == "a label":
            evolved = evolve(request, labels={"x": "y"}, version=request.version + 1)
            w.tx.put_request(evolved)
            w.books.put_request(evolved)
        elif change == "a due time":
            w.wake(request.id, WorkKind.WARN, w.now + 100_000, tag="100000")


def test_a_look_that_changed_something_is_noticed(monkeypatch: Patch) -> None:
    """Asking for a quote could take the place of somebody who waits."""
    quote = Engine.quote

    def greedy(engine: Engine, *args: Any) -> Any:
        engine.committer.write(
            lambda w: w.record(ev.SubjectKind.SYSTEM, 0, ev.Noted(what="hm", facts={})), actor="nobody"
        )
        return quote(engine, *args)

    monkeypatch.setattr(Engine, "quote", greedy)
    caught(r"only looks, and yet something changed")


def test_a_repeated_call_that_acts_again_is_noticed(monkeypatch: Patch) -> None:
    """A client that repeats its call after a lost answer could get everything twice."""
    monkeypatch.setattr(memory.MemoryTransaction, "put_idempotent", lambda tx, reply: None)
    caught(r"repeated, was not answered as before", r"given again: .*already exists")


# --- the world goes on ------------------------------------------------------------------------


def test_a_run_that_goes_on_after_its_end_is_noticed(monkeypatch: Patch) -> None:
    """A run could keep its hosts past its end, and everyone behind it wait."""
    wake = Write.wake

    def late(w: Write, subject: int, kind: WorkKind, at: int, tag: str = "") -> None:
        wake(w, subject, kind, at, tag)

    do = Write.do

    def drop(w: Write, subject: int, effect: Any) -> None:
        if effect.kind is not WorkKind.RUN_END:
            do(w, subject, effect)

    monkeypatch.setattr(Write, "wake", late)
    monkeypatch.setattr(Write, "do", drop)
    caught(r"runs \d+ s after its end")


def test_a_request_nobody_plans_is_noticed(monkeypatch: Patch) -> None:
    """Somebody could wait for ever although there is room."""
    see = Books.snapshot

    def snapshot(books: Books) -> FleetSnapshot:
        seen = see(books)
        return replace(seen, queue=tuple(r for r in seen.queue if r.project != "red"))

    monkeypatch.setattr(Books, "snapshot", snapshot)
    caught(r"is still PENDING although everything works again")


# --- how it is told ---------------------------------------------------------------------------


def test_a_failure_says_how_to_see_it_again(monkeypatch: Patch) -> None:
    """A fault found overnight could not be found again."""
    monkeypatch.setattr(MemoryReader, "events", _without_event_40(MemoryReader.events))
    first, second = breaking.run(3, steps=60), breaking.run(3, steps=60)
    assert first.text() == second.text()
    *story, blank, broken, again = first.text().splitlines()
    assert len(story) == sum(1 for line in story if re.match(r" *\d+ (#\d+|-----) ", line)) > 39
    assert blank == "" and broken == "BROKEN: event 41 follows event 39"
    assert re.fullmatch(r"seed 3, opendws \S+( at \S+)?, replay: dws simulate --break 3 --steps 60", again)


def _without_event_40(tell: Callable[..., list[ev.Event]]) -> Callable[..., list[ev.Event]]:
    return lambda reader, **query: [event for event in tell(reader, **query) if event.seq != 40]


@pytest.mark.parametrize("seed", [2, 3])
def test_a_seed_tells_the_same_story_every_time(seed: int) -> None:
    """A replay could take another course than what it is to replay."""
    first, second = breaking.run(seed), breaking.run(seed)
    assert "\n".join(first.story).encode() == "\n".join(second.story).encode()
    assert first.counts == second.counts and len(first.story) > 100
    assert breaking.run(seed + 1, steps=50).story != first.story


def test_a_run_that_goes_on_past_its_instant_is_noticed(monkeypatch: Patch) -> None:
    """An instance that was to end at eleven could run on, into what is promised to others."""
    monkeypatch.setattr(Demand, "ends_at", lambda demand, now, duration_s: now + duration_s)
    caught("not a duration after its delivery")
