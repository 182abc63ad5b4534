"""The calendar of the fleet in the terminal: pools by time, as the reader may see it.

    h100  us-central1-a  16 x a3-highgpu-8g, 6 free now
    free  ▃▃▃▃▃▃▃▃········▅▅▅▅▅▅████        the fewest hosts free within each column
          ██ train 8 ██████████             a booking: its name and hosts, inside its bar or beside it

A column is the same length of time everywhere; labels are the reader's clocks, also where these change.
Plain text without colour says everything that colour does. Pure: wire data in, lines out; widths are in
characters. Neighbours: `dws.cli.zones` for instants, `dws.model.localtime` for midnights.
"""

from __future__ import annotations

import textwrap
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, time, timedelta, tzinfo
from itertools import groupby
from typing import TYPE_CHECKING, Final

import click

from dws.cli.zones import instant_of
from dws.model.localtime import reached, wall_at
from dws.model.time import DAY, FOREVER, HOUR, MINUTE

if TYPE_CHECKING:
    from dws.wire.native_v1 import Bar, CalendarView, PoolCalendar

MARGIN: Final = 6
WIDTH_MIN: Final = 40
LANES_MAX: Final = 12
SHARES: Final = "·▁▂▃▄▅▆▇█"
NOW: Final = "▼"
_HOUR_STEPS: Final = (15 * MINUTE, 30 * MINUTE, HOUR, 2 * HOUR, 3 * HOUR, 6 * HOUR, 12 * HOUR)
_DAY_STEPS: Final = (1, 2, 7, 14, 28, 56, 112)
_DAY_ROOM: Final = len("Mon 11") + 2
_LONG_DAY_ROOM: Final = len("Mon 11 Jan") + 2
_HOUR_ROOM: Final = len("09:00") + 2


@dataclass(frozen=True, slots=True)
class Look:
    """How a kind of booking is drawn; `fill` of one's own, `shade` of others'. `word` names one whose name is
    not told. Kinds are drawn in the order of the table below."""

    word: str
    fill: str
    shade: str
    colour: str


LOOKS: Final = {
    "MAINTENANCE": Look("maintenance", "#", "#", "yellow"),
    "OUTAGE": Look("down", "x", "x", "red"),
    "RESERVATION": Look("reserved", "█", "▒", "green"),
    "RUN": Look("run", "━", "─", "cyan"),
    "PROMISE": Look("promised", "╍", "┄", "blue"),
}


@dataclass(frozen=True, slots=True)
class Axis:
    """Columns of time: `columns` of them from `start` to `end`, in epoch seconds."""

    start: int
    end: int
    columns: int

    def column(self, instant: int) -> int:
        """The column of an instant; beyond the edges for one that is not shown."""
        return (instant - self.start) * self.columns // (self.end - self.start)

    def begin(self, column: int) -> int:
        """The first instant of a column."""
        return self.start - (self.start - self.end) * column // self.columns

    def room(self, seconds: int) -> int:
        """How many columns so many seconds take."""
        return seconds * self.columns // (self.end - self.start)


@dataclass(slots=True)
class Row:
    """Characters and how each is coloured."""

    characters: list[str]
    colours: list[str]

    @classmethod
    def blank(cls, columns: int) -> Row:
        """Nothing yet."""
        return cls([" "] * columns, [""] * columns)

    def put(self, column: int, text: str, colour: str = "") -> None:
        """Write over what is there; what does not fit is left out."""
        for at, character in enumerate(text, start=column):
            if 0 <= at < len(self.characters):
                self.characters[at], self.colours[at] = character, colour

    def is_blank(self, begin: int, end: int) -> bool:
        """True when nothing stands in [begin, end)."""
        return all(character == " " for character in self.characters[max(begin, 0) : end])

    def is_empty(self, column: int) -> bool:
        """True outside of everything, false in the gaps of a label too."""
        return self.characters[column] == " " and not self.colours[column]

    def draw(self, label: str, *, colour: bool) -> str:
        """As a line."""
        if not colour:
            return f"{label:<{MARGIN}}{''.join(self.characters)}".rstrip()
        pieces = [f"{label:<{MARGIN}}"]
        for name, cells in groupby(zip(self.characters, self.colours, strict=True), key=lambda cell: cell[1]):
            text = "".join(character for character, _ in cells)
            pieces.append(click.style(text, fg=name) if name else text)
        return "".join(pieces).rstrip()


def gantt(view: CalendarView, *, width: int, zone: tzinfo, colour: bool = False) -> list[str]:
    """The lines of a drawing `width` characters wide (at least 40); times are what clocks in `zone` show."""
    start, end, now = (instant_of(text) or 0 for text in (view.start, view.end, view.now))
    axis = Axis(start, max(end, start + 1), max(width, WIDTH_MIN) - MARGIN)
    mark = axis.column(now) if start <= now < end else -1
    lines = _header(axis, zone, mark, colour=colour)
    for pool in view.pools:
        lines += ["", *_pool(pool, axis, now, mark, colour=colour)]
    return [*lines, "", *_legend(view, axis, now if mark >= 0 else 0, zone)]


# --- the head ---------------------------------------------------------------------------------


def _header(axis: Axis, zone: tzinfo, mark: int, *, colour: bool) -> list[str]:
    """From when to when, days, hours where there is room for them, and a ruler."""
    first, last = (datetime.fromtimestamp(at, zone) for at in (axis.start, axis.end))
    title = f"{first:%a %Y-%m-%d %H:%M} to {last:%a %Y-%m-%d %H:%M} ({zone})"
    days, hours, ruler = (Row.blank(axis.columns) for _ in range(3))
    ruler.put(0, "─" * axis.columns)
    apart = next((n for n in _DAY_STEPS if axis.room(n * DAY) >= _DAY_ROOM), _DAY_STEPS[-1])
    day_ticks, hour_ticks = list(_days(axis, zone, apart)), list(_hours(axis, zone))
    day_form = "%a %d" if apart == 1 else "%d %b"
    if axis.room(apart * DAY) >= _LONG_DAY_ROOM:
        day_form = "%a %d %b"
    for at in [*day_ticks, axis.start]:
        _label(days, axis.column(at), f"{datetime.fromtimestamp(at, zone):{day_form}}")
    for at in hour_ticks:
        _label(hours, axis.column(at), f"{datetime.fromtimestamp(at, zone):%H:%M}")
    for at in [*hour_ticks, *day_ticks]:
        ruler.put(axis.column(at), "┼" if at in day_ticks else "┬")
    ruler.put(mark, NOW, "red")
    rows = [days, hours, ruler] if hour_ticks else [days, ruler]
    return [title, *(row.draw("", colour=colour) for row in rows)]


def _label(row: Row, column: int, text: str) -> None:
    """Write it where it fits whole, with a space on both sides."""
    if column + len(text) <= len(row.characters) and row.is_blank(column - 1, column + len(text) + 1):
        row.put(column, text)


def _days(axis: Axis, zone: tzinfo, apart: int) -> Iterator[int]:
    """Midnights so many days apart; weeks begin on Monday."""
    day = wall_at(axis.start, zone).date()
    while (at := reached(datetime.combine(day, time()), zone)) < axis.end:
        if at >= axis.start and (day.toordinal() - 1) % apart == 0:
            yield at
        day += timedelta(days=1)


def _hours(axis: Axis, zone: tzinfo) -> Iterator[int]:
    """Hours on the clock, so far apart that their labels have room; none where only days have."""
    step = next((s for s in _HOUR_STEPS if axis.room(s) >= _HOUR_ROOM), 0)
    midnight = datetime.combine(wall_at(axis.start, zone).date(), time())
    count = 0
    while step and (at := reached(midnight + timedelta(seconds=count * step), zone)) < axis.end:
        if at >= axis.start:
            yield at
        count += 1


# --- a pool -----------------------------------------------------------------------------------


def _pool(pool: PoolCalendar, axis: Axis, now: int, mark: int, *, colour: bool) -> list[str]:
    """What it is, what is free, and its bookings."""
    steps = [(instant_of(step.start) or 0, step.hosts) for step in pool.free]
    title = f"{pool.pool}  {pool.zone}  {pool.hosts} x {pool.machine}"
    if mark >= 0:
        shared = f" of {pool.hosts * pool.host_units} accelerators" if pool.host_units > 1 else ""
        title += f", {_fewest(steps, now, now + 1)}{shared} free now"
    free = Row.blank(axis.columns)
    for column in range(axis.columns):
        fewest = _fewest(steps, axis.begin(column), axis.begin(column + 1))
        free.put(column, _share(fewest, pool.hosts * pool.host_units))
    lanes, left_out = _lanes(pool.bars, axis)
    for lane in lanes:
        if mark >= 0 and lane.is_empty(mark):
            lane.put(mark, "┊", "red")
    lines = [click.style(title, bold=True) if colour else title, free.draw("free", colour=colour)]
    lines += [lane.draw("", colour=colour) for lane in lanes]
    return [*lines, f"{'':<{MARGIN}}… and {left_out} more"] if left_out else lines


def _fewest(steps: Sequence[tuple[int, int]], begin: int, end: int) -> int:
    """The fewest hosts free at any instant in [begin, end)."""
    first = max(bisect_right(steps, begin, key=lambda step: step[0]) - 1, 0)
    within = [hosts for since, hosts in steps[first:] if since < max(end, begin + 1)]
    return min(within, default=0)


def _share(free: int, hosts: int) -> str:
    """A character for so many of so many: none only when none is free, full only when all are."""
    if free <= 0 or hosts <= 0:
        return SHARES[0]
    return SHARES[-1] if free >= hosts else SHARES[1 + free * (len(SHARES) - 2) // hosts]


def _lanes(bars: Sequence[Bar], axis: Axis) -> tuple[list[Row], int]:
    """Bars side by side as far as they do not touch, and how many there was no lane for."""
    shown = [bar for bar in bars if _span(bar)[0] < axis.end and _span(bar)[1] > axis.start]
    shown.sort(key=lambda bar: (_order(bar), not bar.own, bar.start, bar.name))
    lanes: list[Row] = []
    left_out = 0
    for bar in shown:
        column, text = _drawn(bar, axis)
        lane = next((row for row in lanes if row.is_blank(column - 1, column + len(text) + 1)), None)
        if lane is None and len(lanes) < LANES_MAX:
            lane = Row.blank(axis.columns)
            lanes.append(lane)
        if lane is None:
            left_out += 1
        else:
            lane.put(column, text, _colour(bar))
    return lanes, left_out


def _drawn(bar: Bar, axis: Axis) -> tuple[int, str]:
    """Where its drawing begins, and that: the bar with its label inside it, to its right, or to its left."""
    start, end = _span(bar)
    begin = max(axis.column(start), 0)
    until = min(max(axis.column(end - 1) + 1, begin + 1), axis.columns)
    look, label, room = _look(bar), _text(bar), until - begin
    fill = look.fill if bar.own else look.shade
    drawn = f"{fill} {label} ".ljust(room, fill) if len(label) + 4 <= room else fill * room
    drawn = "◀" + drawn[1:] if start < axis.start else drawn
    drawn = drawn[:-1] + "▶" if end > axis.end else drawn
    if len(label) + 4 <= room:
        return begin, drawn
    if until + 1 + len(label) <= axis.columns:
        return begin, f"{drawn} {label}"
    if len(label) >= begin:  # room on neither side
        label = f"{label[: begin - 2]}…" if begin > 2 else ""
    return (begin - len(label) - 1, f"{label} {drawn}") if label else (begin, drawn)


def _look(bar: Bar) -> Look:
    """How it is drawn; a kind that a newer server made up is drawn too."""
    return LOOKS.get(bar.kind) or Look(bar.kind.lower(), "=", "-", "")


def _order(bar: Bar) -> int:
    return list(LOOKS).index(bar.kind) if bar.kind in LOOKS else len(LOOKS)


def _span(bar: Bar) -> tuple[int, int]:
    """From when to when, for ever where no end is known."""
    return instant_of(bar.start) or 0, instant_of(bar.end) or FOREVER


def _text(bar: Bar) -> str:
    """Its name, or what it is, and its hosts: how many of them are used once it has begun, how many lack."""
    name = bar.name or _look(bar).word
    hosts = f"{bar.in_use}/{bar.count}" if bar.in_use else str(bar.count)
    notes = (f" -{bar.short}" if bar.short else "") + ("?" if bar.state == "PENDING_APPROVAL" else "")
    return f"{'↳ ' if bar.parent else ''}{name} {hosts}{notes}"


def _colour(bar: Bar) -> str:
    if bar.short:
        return "red"
    return _look(bar).colour if bar.own or bar.kind in ("OUTAGE", "MAINTENANCE") else "bright_black"


# --- the legend -------------------------------------------------------------------------------


def _legend(view: CalendarView, axis: Axis, now: int, zone: tzinfo) -> list[str]:
    """What the signs mean, of those that are there."""
    bars = [bar for pool in view.pools for bar in pool.bars]
    seen = {(bar.kind, bar.own) for bar in bars}
    parts = [f"{NOW} now, {datetime.fromtimestamp(now, zone):%H:%M}"] if now else []
    parts.append(f"{SHARES[1]}…{SHARES[-1]} share of hosts free, {SHARES[0]} none")
    for kind, look in LOOKS.items():
        if look.fill == look.shade:
            parts += [f"{look.fill} {look.word}"] if {(kind, True), (kind, False)} & seen else []
            continue
        parts += [f"{look.fill} {look.word}, yours"] if (kind, True) in seen else []
        parts += [f"{look.shade} {look.word}, others"] if (kind, False) in seen else []
    parts += ["↳ inside a reservation"] if any(bar.parent for bar in bars) else []
    parts += ["3/8 of 8 hosts 3 in use"] if any(bar.in_use for bar in bars) else []
    parts += ["-2 lacks 2 hosts"] if any(bar.short for bar in bars) else []
    parts += ["? waits for approval"] if any(bar.state == "PENDING_APPROVAL" for bar in bars) else []
    unbroken = "   ".join(part.replace(" ", "\u00a0") for part in parts)
    lines = textwrap.wrap(unbroken, axis.columns + MARGIN, break_on_hyphens=False, break_long_words=False)
    return [line.replace("\u00a0", " ") for line in lines]
