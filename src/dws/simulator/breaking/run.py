"""One run: the safety phase, the liveness phase, and every judgement on the way."""

from __future__ import annotations

import traceback
from collections import Counter
from collections.abc import Callable
from typing import Final

from dws.backends.simulated.backend import SimulatedBackend
from dws.engine.commands import ChangeHosts
from dws.engine.ports import RequestQuery, ReservationQuery
from dws.model import events as ev
from dws.model.booking import Booking
from dws.model.errors import DwsError, Unavailable
from dws.model.request import Grant
from dws.model.time import DAY, FOREVER
from dws.model.topology import Fleet
from dws.simulator.breaking import checks
from dws.simulator.breaking.auditor import Auditor
from dws.simulator.breaking.block import OPEN, Block
from dws.simulator.breaking.frail import FrailStore, SimulatedCrash
from dws.simulator.breaking.model import Told
from dws.simulator.breaking.outcome import Broken, Outcome, line
from dws.simulator.breaking.people import OLGA, Command, subjects
from dws.simulator.breaking.scenario import Scenario, chance, draw
from dws.simulator.breaking.shapes import could_hold
from dws.simulator.breaking.weather import Weather
from dws.simulator.breaking.workload import CommandSource
from dws.simulator.world import World
from dws.store.memory import MemoryStore

START: Final = 1_798_761_600
STEPS: Final = 200
DEEP_EVERY: Final = 50
REPEAT_WITHIN_S: Final = DAY - 600
TRIES_MAX: Final = 20
LIVENESS_TICKS_MAX: Final = 20_000
LIVENESS_S: Final = 30 * DAY
STUCK_STEP_S: Final = 1
"""What is due and does not get done, as when a lease must run out first, is looked at again so often: as the
loop of a server does."""

Repeatable = tuple[int, Command, tuple[int, ...]]


def run(seed: int, *, steps: int = STEPS) -> Outcome:
    """Break the scheduler once, `steps` acts long. The same seed and steps give the same story."""
    one = Run(draw(seed, steps=steps))
    fault = ""
    try:
        one.begin()
        one.safety()
        one.liveness()
    except Broken as broken:
        fault = str(broken)
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        fault = f"{type(error).__name__}: {error} ({where.filename.rpartition('/src/')[2]}:{where.lineno})"
    return Outcome(
        seed=seed,
        steps=0 if steps == STEPS else steps,
        fault=fault,
        story=tuple(one.story),
        counts=one.counts,
        simulated_s=one.now - START,
    )


class Run:
    """The world of one scenario, its auditor, and the two phases."""

    def __init__(self, scenario: Scenario) -> None:
        self.scenario = scenario
        self.story: list[str] = []
        self.counts: Counter[str] = Counter()
        self.store = FrailStore(MemoryStore())
        self.backend = SimulatedBackend(
            seed=scenario.seed, boot_s=scenario.boot_s, boot_jitter_s=scenario.boot_jitter_s
        )
        self.world = World(store=self.store, backend=self.backend, policy=scenario.policy, start=START)
        self.auditor = Auditor(self._fleet, scenario.policy)
        self.weather = Weather(chance(scenario.seed, "weather"), self.backend, self.store, self._fleet)
        self.source = CommandSource(
            chance(scenario.seed, "commands"), self.auditor, self._fleet, scenario.policy, self._bookings
        )
        self._dice = chance(scenario.seed, "driver")
        self._repeatable: list[Repeatable] = []
        self._quiet_at = START

    @property
    def now(self) -> int:
        """Domain time."""
        return self.world.clock.now()

    def _fleet(self) -> Fleet:
        with self.store.read() as reader:
            return reader.fleet() or self.scenario.fleet

    def _bookings(self) -> list[Booking]:
        with self.store.read() as reader:
            return reader.open_bookings()

    def tell(self, words: str, kind: str) -> None:
        """A line of the story that is not an event."""
        self.counts[f"({kind})"] += 1
        self.story.append(f"{self.now - START:>7} ----- {words}")

    # --- the phases ---------------------------------------------------------------------------

    def begin(self) -> None:
        """The fleet is declared."""
        self.world.open(self.scenario.fleet)
        self._listen()

    def safety(self) -> None:
        """Anything may fail, no invariant may."""
        for step in range(self.scenario.steps):
            if self._dice.random() < self.scenario.storminess:
                self.tell(self.weather.strike(), "fault")
            chosen = self._dice.random()
            if chosen < 0.5:
                self.command(self.source.next(self.now))
            elif chosen < 0.56 and self._repeatable:
                self._repeat(self._dice.choice(self._repeatable))
            elif chosen < 0.58 and self.scenario.storminess:
                self._step_the_clock(self._dice.choice((30, 1_000)))
            else:
                self.pass_time(self._dice.choice((1, 20, 20, 100, 600)))
            if step % DEEP_EVERY == DEEP_EVERY - 1:
                checks.deep(self.auditor, self.world.engine, self.store)

    def _give_back_what_has_no_end(self, end: int) -> None:
        """Reservations made for now would keep others waiting for years, rightly."""
        for block in list(self.auditor.calendar.blocks.values()):
            if block.on_demand and block.phase in OPEN and block.window.end > end:
                self.command(_given_back(block))

    def liveness(self) -> None:
        """Everything is healed; every request must come to its end, or have a reason to wait, and every
        reservation and series to its own."""
        self.weather.heal()
        self.tell("everything is healed", "heal")
        self.tick()
        with self.store.read() as reader:
            unready = [(h.pool, h.unit) for h in reader.host_statuses()]
        fleet = self._fleet()
        names = tuple(f"{pool}/{fleet.pool(pool).hosts[unit]}" for pool, unit in unready)
        if names:
            repair = ChangeHosts(hosts=names, state="READY", confirm=True)
            self.command(Command(words="olga repairs all", act=lambda e: e.change_hosts(OLGA, repair)))
        end = self.now + LIVENESS_S
        self._give_back_what_has_no_end(end)
        for _ in range(LIVENESS_TICKS_MAX):
            if not self._stuck() or not self._next_instant(end):
                break
        stuck = self._stuck()
        if stuck:
            raise Broken(f"{stuck} although everything works again")
        checks.nobody_is_left_over(self.auditor, self.backend)
        checks.deep(self.auditor, self.world.engine, self.store)

    def _stuck(self) -> str:
        """Somebody, or something, that has not come to its end, in words."""
        told = next((t for t in self.auditor.requests.values() if not t.is_over and self._must_end(t)), None)
        if told is not None:
            return f"'{told.name}' is still {told.phase}"
        calendar = self.auditor.calendar
        block = next((b for b in calendar.blocks.values() if not b.is_over), None)
        if block is not None:
            return f"reservation '{block.name}' is still {block.phase}"
        cycle = next((c for c in calendar.cycles.values() if not c.is_over), None)
        return f"series '{cycle.name}' is still there" if cycle is not None else ""

    def _must_end(self, told: Told) -> bool:
        """Only what the fleet, as it has become, could never hold may wait for ever."""
        if told.phase not in ("PENDING", "BOOKED") or told.demand.reservation > 0:
            return True
        return could_hold(self._fleet(), told.demand)

    # --- commands -----------------------------------------------------------------------------

    def command(self, command: Command) -> None:
        """Give a command and judge its reply. One that died on the way is given again if that is safe."""
        if command.reads:  # what fell due by a fault of this very instant is not its doing
            self.tick()
        self.tell(command.words, "command")
        before = self._fingerprint()
        known = self._known()
        try:
            reply = command.act(self.world.engine)
        except SimulatedCrash:
            self._restart()
            if command.call_id:
                self.tell(f"again: {command.words}", "retry")
                made = subjects(self._answered(command))
                if made:
                    self._remember(command, made, known)
            return
        except Unavailable:
            self._after_trouble()
            return
        except DwsError as error:
            self._judge_refusal(command, error)
            if self._fingerprint() != before:
                raise Broken(f"'{command.words}' was refused, and yet something changed") from error
            self._listen()
            return
        if command.refusal is not None and not command.may_refuse:
            raise Broken(f"'{command.words}' was answered, and should get {command.refusal.__name__}")
        if command.reads and self._fingerprint() != before:
            raise Broken(f"'{command.words}' only looks, and yet something changed")
        self._settle()
        self._remember(command, subjects(reply), known)

    def _judge_refusal(self, command: Command, error: DwsError) -> None:
        self.counts["(refused)"] += 1
        expected = command.refusal
        if expected is None or not isinstance(error, (expected, *command.also)):
            name = expected.__name__ if expected else "an answer"
            raise Broken(f"'{command.words}' should get {name}, got {type(error).__name__}: {error}")
        if not error.message or error.code == "INTERNAL":
            raise Broken(f"'{command.words}' was refused without saying why")

    def _answered(self, command: Command) -> object:
        """The reply to a command given again until it is answered; what it is about may have moved on."""
        for _ in range(TRIES_MAX):
            try:
                reply = command.act(self.world.engine)
            except SimulatedCrash:
                self._restart()
            except Unavailable:
                self._after_trouble()
            except DwsError as error:
                if command.makes and not command.may_refuse:
                    raise Broken(f"'{command.words}', given again: {error}") from error
                return ()
            else:
                self._settle()
                return reply
        raise Broken(f"'{command.words}' was never answered")

    def _remember(self, command: Command, made: tuple[int, ...], known: int) -> None:
        if command.makes and self._known() != known + command.makes:
            count = self._known() - known
            raise Broken(f"'{command.words}' made {count} requests, not {command.makes}")
        if command.call_id and made:
            self._repeatable.append((self.now, command, made))

    def _known(self) -> int:
        """How many requests and reservations were ever asked for."""
        return len(self.auditor.requests) + len(self.auditor.calendar.blocks)

    def _repeat(self, earlier: Repeatable) -> None:
        """The very same call once more must be answered the same and do nothing."""
        at, command, made = earlier
        if self.now > at + REPEAT_WITHIN_S:
            return
        self.tell(f"repeats: {command.words}", "repeat")
        known = self._known()
        if subjects(self._answered(command)) != made or self._known() != known:
            raise Broken(f"'{command.words}', repeated, was not answered as before")

    # --- time ---------------------------------------------------------------------------------

    def pass_time(self, seconds: int) -> None:
        """Go through everything due within so many seconds."""
        end = self.now + seconds
        while self._next_instant(end):
            pass
        self.world.clock.jump_to(max(end, self.now))
        self.tick()

    def _next_instant(self, end: int) -> bool:
        """Go to the next instant at which something is due; False when there is none up to `end`."""
        due = self.world.engine.next_due()
        if due is not None and due <= self.now:
            due = self.now + STUCK_STEP_S
        if due is None or due > end:
            return False
        self.world.clock.jump_to(due)
        self.tick()
        return True

    def tick(self) -> None:
        """Let the engine do what is due now, and judge it."""
        self._guarded(self.world.engine.tick)
        self._settle()
        if not self.backend.faults.unavailable:
            checks.nothing_is_imagined(self.auditor, self.backend)

    def _guarded(self, act: Callable[[], object]) -> None:
        """Do it until it gets through, whatever happens to the store and the process."""
        for _ in range(TRIES_MAX):
            try:
                act()
            except SimulatedCrash:
                self.tell("the process died and another takes over", "crash")
                self.world.engine = self.world.new_engine()
                act = self._open
            except Unavailable:
                self.tell("the store was busy", "busy")
            else:
                return
            self.auditor.process_was_away(self._quiet_at, self.now)
        raise Broken("the engine never got through")

    def _open(self) -> None:
        self.world.engine.open()
        self.world.engine.tick()

    def _restart(self) -> None:
        """The process died in the middle of a command."""
        self.tell("the process died and another takes over", "crash")
        self.world.engine = self.world.new_engine()
        self.auditor.process_was_away(self._quiet_at, self.now)
        self._guarded(self._open)
        self._settle()

    def _after_trouble(self) -> None:
        self.tell("the store was busy", "busy")
        self.auditor.process_was_away(self._quiet_at, self.now)
        self.tick()

    def _step_the_clock(self, seconds: int) -> None:
        """Nobody acts for so long, and then it is later."""
        self.tell(f"the clock steps {seconds} s", "clock step")
        before = self._quiet_at
        self.world.clock.jump_to(self.now + seconds)
        self.auditor.process_was_away(before, self.now)
        self.tick()

    # --- judging ------------------------------------------------------------------------------

    def _settle(self) -> None:
        """The engine has nothing more to do now: judge what it did, and how things stand."""
        self._listen()
        checks.quiet(self.auditor, self.world.engine, self.store, self.now)
        self._quiet_at = self.now

    def _listen(self) -> None:
        with self.store.read() as reader:
            events = reader.events(after=self.auditor.seq, limit=1_000_000)
        for event in events:
            self.story.append(line(START, event))
            self.counts[event.kind] += 1
            if isinstance(event.body, ev.Started):
                self._count_kind(event.body.grant)
            self.auditor.judge(event)
        self.auditor.settled()

    def _count_kind(self, grant: Grant) -> None:
        """Starts of slices, and of fractions of hosts, are counted apart too."""
        if grant.slices:
            self.counts["(slices)" if grant.slices > 1 else "(slice)"] += 1
        elif grant.shape != self._fleet().pool(grant.pool).shape.name:
            self.counts["(fraction)"] += 1

    def _fingerprint(self) -> tuple[object, ...]:
        """Everything a command could change, to see that one changed nothing."""
        with self.store.read() as reader:
            return (
                reader.last_seq(),
                reader.ledger_version(),
                reader.next_due(),
                reader.requests(RequestQuery(include_deleted=True, limit=1_000_000)),
                reader.reservations(ReservationQuery(include_deleted=True, limit=1_000_000)),
                reader.all_series(),
                reader.open_bookings(),
                reader.host_statuses(),
                reader.fleet(),
                len(reader.usage(start=0, end=FOREVER)),
                [reader.work(told) for told in self.auditor.requests],
                [reader.work(block) for block in self.auditor.calendar.blocks],
                [reader.work(cycle) for cycle in self.auditor.calendar.cycles],
            )


def _given_back(block: Block) -> Command:
    return Command(
        words=f"olga releases '{block.name}'",
        act=lambda engine: engine.release_reservation(OLGA, block.project, str(block.id)),
    )
