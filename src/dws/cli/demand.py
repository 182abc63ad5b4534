"""What is wanted, as words on a command line: the options of `run`, `submit`, `quote` and `amend`.

    --accelerators h100:16 --for 4h --within block --or "a100:16 for 8h in us-central1-b"
    --tpu v5e --topology 4x8 --for 4h --or "2 x v5litepod-16"

The options describe the first alternative; each `--or` adds one, written as a sentence. What an `--or`
leaves out is as in the first: the duration, but never the machine.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypedDict, TypeVar

import click

from dws.cli import tpus
from dws.cli.session import Session, complete_reservation
from dws.model.errors import InvalidArgument
from dws.wire.timefmt import format_duration, parse_duration

if TYPE_CHECKING:
    from dws.wire.native_v1 import Alternative, Grouping, Request

F = TypeVar("F", bound=Callable[..., Any])
OR_EXAMPLE: Final = '"a100:16 for 8h in us-central1-b within block"'
_SENTENCE = re.compile(
    r"(?:(?:(?P<count>\d+)\s*x\s*)?(?P<what>[\w.-]+)|(?P<accelerators>[\w.-]+:\d+))"
    r"(?:\s+(?P<topology>\d+x\d+(?:x\d+)?))?"
    r"(?:\s+for\s+(?P<duration>\S+))?"
    r"(?:\s+in\s+(?P<locations>[\w,-]+))?"
    r"(?:\s+within\s+(?P<within>[\w-]+))?"
    r"(?:\s+together\s+(?P<together>\d+/[\w-]+))?"
    r"(?:\s+apart\s+(?P<apart>(?:\d+/)?[\w-]+))?"
    r"(?P<near>\s+near)?"
)
_IN_EACH = re.compile(r"(?:(\d+)/)?([\w-]+)")
_AMOUNT = re.compile(r"[\w.-]+:\d+")


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """The demand options as they were given; empty where they were not."""

    accelerators: str
    duration: str
    machine: str
    count: int | None
    locations: tuple[str, ...]
    within: str
    others: tuple[str, ...]
    reservation: str = ""
    tpu: str = ""
    topology: str = ""
    together: str = ""
    apart: str = ""
    near: bool = False

    @property
    def is_empty(self) -> bool:
        """True when nothing was said about what is wanted."""
        what = (self.accelerators, self.machine, self.tpu, self.topology)
        closeness = (self.within, self.together, self.apart, self.near)
        parts = (*what, *closeness, self.duration, self.locations, self.others)
        return not any(parts) and self.count is None


class What(TypedDict):
    """What, and how many, as the API is told."""

    accelerators: str
    machine: str
    count: int
    topology: str


def alternatives(wish: Wish) -> list[Alternative]:
    """The alternatives asked for, in order. Raises UsageError saying what is missing."""
    from dws.wire.native_v1 import Alternative

    what = what_of(wish)
    until_end = wish.reservation not in ("", "any")
    if not wish.duration and not until_end:
        raise click.UsageError("say for how long: --for DURATION, for example --for 4h")
    if wish.duration:
        parse_duration(wish.duration, field="for")
    first = Alternative(
        duration=wish.duration,
        locations=list(wish.locations),
        within=wish.within or None,
        grouping=grouping_of(wish.together, wish.apart),
        near=wish.near,
        **what,
    )
    return [first, *(parse_alternative(text, duration=wish.duration) for text in wish.others)]


def what_of(wish: Wish) -> What:
    """What is wanted, said in one way. Raises UsageError or InvalidArgument otherwise."""
    check_what(wish)
    if wish.tpu:
        accelerators, topology = tpus.asked(wish.tpu, wish.topology, wish.count or 1)
        return What(accelerators=accelerators, machine="", count=0, topology=topology)
    count = (wish.count or 1) if wish.machine else 0
    return What(accelerators=wish.accelerators, machine=wish.machine, count=count, topology=wish.topology)


def check_what(wish: Wish) -> None:
    """Raises UsageError or InvalidArgument unless it says what, and how many, in one way."""
    if sum(map(bool, (wish.accelerators, wish.machine, wish.tpu))) != 1:
        raise click.UsageError(
            "say what you want: either --accelerators TYPE:COUNT (for example h100:16) "
            "or --machine TYPE --count N, or a TPU slice: --tpu TYPE --topology AxB"
        )
    if wish.accelerators and wish.count is not None:
        raise click.UsageError("--count goes with --machine and --tpu; write --accelerators TYPE:COUNT")
    if wish.accelerators and not (
        _AMOUNT.fullmatch(wish.accelerators) or tpus.is_slice_name(wish.accelerators)
    ):
        raise InvalidArgument(
            f"accelerators: '{wish.accelerators}' is not TYPE:COUNT, such as 'h100:16'",
            field="accelerators",
        )


def parse_alternative(text: str, *, duration: str) -> Alternative:
    """An alternative from its sentence; `duration` is used where it has none. Raises UsageError."""
    from dws.wire.native_v1 import Alternative

    match = _SENTENCE.fullmatch(text.strip())
    what = None if match is None else _what_of_sentence(match)
    if match is None or what is None:
        raise click.UsageError(
            f"--or '{text}' is not understood; write for example {OR_EXAMPLE}, '2 x a3-highgpu-8g for 4h' or "
            "'2 x v5e 4x8'"
        )
    said = match["duration"] or duration
    if said:
        parse_duration(said, field="or")
    return Alternative(
        duration=said,
        locations=match["locations"].split(",") if match["locations"] else [],
        within=match["within"],
        grouping=grouping_of(match["together"] or "", match["apart"] or ""),
        near=bool(match["near"]),
        **what,
    )


def grouping_of(together: str, apart: str) -> Grouping | None:
    """How machines stand, from `4/subblock` and `1/rack`, or `rack`. Raises UsageError."""
    from dws.wire.native_v1 import Grouping

    said = {}
    for option, text in (("--together", together), ("--apart", apart)):
        match = _IN_EACH.fullmatch(text)
        if text and (match is None or (option == "--together" and not match[1])):
            raise click.UsageError(f"{option} '{text}' is not NUMBER/LEVEL, such as '4/subblock'")
        if match is not None:
            said[option] = int(match[1] or 1), match[2]
    levels = {level for _, level in said.values()}
    if len(levels) > 1:
        raise click.UsageError("--together and --apart have to name the same level")
    if not levels:
        return None
    return Grouping(
        level=levels.pop(),
        together=said.get("--together", (1, ""))[0],
        at_most=said.get("--apart", (0, ""))[0],
    )


def _what_of_sentence(match: re.Match[str]) -> What | None:
    """What an alternative's sentence asks for, None when it does not say how many of what."""
    what, topology, count = match["what"], match["topology"] or "", match["count"]
    if match["accelerators"]:
        return What(accelerators=match["accelerators"], machine="", count=0, topology=topology)
    if tpus.is_slice_name(what) or (count and topology and tpus.is_generation(what)):
        return What(accelerators=f"{what}:{count or 1}", machine="", count=0, topology=topology)
    return What(accelerators="", machine=what, count=int(count), topology=topology) if count else None


def amended(request: Request, wish: Wish) -> list[Alternative]:
    """The request's alternatives with what was given changed in the first; `--or` replaces the others."""
    import msgspec

    first, *rest = request.alternatives
    if wish.accelerators or wish.machine or wish.tpu:
        first = msgspec.structs.replace(first, **what_of(wish))
    else:
        if wish.topology:
            first = msgspec.structs.replace(first, topology=wish.topology)
        if wish.count is not None:
            first = msgspec.structs.replace(first, count=wish.count)
    if wish.duration:
        first = msgspec.structs.replace(first, duration=wish.duration)
    if wish.locations:
        first = msgspec.structs.replace(first, locations=list(wish.locations))
    if wish.within:
        first = msgspec.structs.replace(first, within=wish.within)
    if wish.together or wish.apart:
        first = msgspec.structs.replace(first, grouping=grouping_of(wish.together, wish.apart))
    if wish.near:
        first = msgspec.structs.replace(first, near=True)
    if wish.others:
        rest = [parse_alternative(text, duration=str(first.duration)) for text in wish.others]
    return [first, *rest]


def words(alternative: Alternative) -> str:
    """An alternative as a sentence that `--or` would read again."""
    if not alternative.accelerators:
        text = f"{alternative.count} x {alternative.machine}"
    else:
        text = tpus.words(alternative.accelerators, alternative.topology)
    if alternative.topology:
        text += f" {alternative.topology}"
    if alternative.duration:
        text += f" for {format_duration(parse_duration(alternative.duration))}"
    if alternative.locations:
        text += f" in {','.join(alternative.locations)}"
    if alternative.within:
        text += f" within {alternative.within}"
    if (stand := alternative.grouping) is not None:
        text += f" together {stand.together}/{stand.level}" if stand.together > 1 else ""
        text += f" apart {stand.at_most}/{stand.level}" if stand.at_most else ""
    return f"{text} near" if alternative.near else text


def window(session: Session, *, not_before: str, not_after: str) -> tuple[str, str]:
    """Both bounds of the start as the API wants them, echoed in local time and UTC before use."""
    bounds = []
    for field, text in (("not-before", not_before), ("not-after", not_after)):
        if not text:
            bounds.append("")
            continue
        bounds.append(session.instant(field, text))
    return bounds[0], bounds[1]


def pairs(values: Sequence[str], *, option: str) -> dict[str, str]:
    """`k=v` options as a mapping. Raises UsageError naming the option."""
    found = {}
    for text in values:
        key, equals, value = text.partition("=")
        if not key or not equals:
            raise click.UsageError(f"{option} '{text}' is not KEY=VALUE")
        found[key] = value
    return found


def demand_options(command: F) -> F:
    """The options that say what is wanted, given to the command as `wish`."""
    import functools

    @functools.wraps(command)
    def inner(*args: Any, zone_names: tuple[str, ...], regions: tuple[str, ...], **kwargs: Any) -> Any:
        wish = Wish(
            locations=(*zone_names, *regions),
            **{name: kwargs.pop(name) for name in _WISHES},
        )
        return command(*args, wish=wish, **kwargs)

    for option in reversed(_DEMAND):
        inner = option(inner)
    return inner  # type: ignore[return-value]


def only(*names: str) -> Callable[[F], F]:
    """Some of the options that say what is wanted, given to the command as `wish`."""
    import functools

    def decorate(command: F) -> F:
        @functools.wraps(command)
        def inner(
            *args: Any, zone_names: tuple[str, ...] = (), regions: tuple[str, ...] = (), **kwargs: Any
        ) -> Any:
            nothing: dict[str, Any] = {"accelerators": "", "machine": "", "count": None, "within": ""}
            nothing |= {"tpu": "", "topology": ""}
            said = {name: kwargs.pop(name, value) for name, value in nothing.items()}
            wish = Wish(locations=(*zone_names, *regions), duration="", others=(), **said)
            return command(*args, wish=wish, **kwargs)

        for option, name in reversed(list(zip(_DEMAND, _NAMES, strict=True))):
            if name in names:
                inner = option(inner)
        return inner  # type: ignore[return-value]

    return decorate


def window_options(command: F) -> F:
    """`--not-before` and `--not-after`."""
    for option in reversed(_WINDOW):
        command = option(command)
    return command


_WISHES: Final = (
    *("accelerators", "duration", "machine", "count", "within", "others", "reservation"),
    *("tpu", "topology", "together", "apart", "near"),
)
_NAMES: Final = (
    *("accelerators", "for", "machine", "tpu", "topology", "count", "zone", "region", "within"),
    *("together", "apart", "near"),
    *("reservation", "or"),
)
_DEMAND: Final = (
    click.option("--accelerators", default="", metavar="TYPE:COUNT", help="For example h100:16."),
    click.option("--for", "duration", default="", metavar="DURATION", help="For how long: 4h, 90m, 1d12h."),
    click.option("--machine", default="", metavar="TYPE", help="Machine type instead of accelerators."),
    click.option(
        "--tpu",
        default="",
        metavar="TYPE",
        shell_complete=tpus.complete_tpu,
        help="A TPU slice: v5e with a --topology, or by its name, v5litepod-16.",
    ),
    click.option(
        "--topology",
        default="",
        metavar="AxB[xC]",
        shell_complete=tpus.complete_topology,
        help="Its sides in chips: 4x8.",
    ),
    click.option("--count", type=click.IntRange(min=1), default=None, help="How many machines, or slices."),
    click.option("--zone", "zone_names", multiple=True, metavar="ZONE", help="Only in this zone."),
    click.option("--region", "regions", multiple=True, metavar="REGION", help="Only in this region."),
    click.option(
        "--within", default="", metavar="LEVEL", help="All within one domain, such as block, or block/b1."
    ),
    click.option(
        "--together",
        default="",
        metavar="N/LEVEL",
        help="In groups of so many, each within one domain: 4/subblock.",
    ),
    click.option(
        "--apart",
        default="",
        metavar="[N/]LEVEL",
        help="At most so many in each domain: 2/rack; rack means one in each.",
    ),
    click.option("--near", is_flag=True, help="As close as possible when it starts."),
    click.option(
        "--reservation",
        default="",
        metavar="NAME",
        shell_complete=complete_reservation,
        help="Run in this reservation (PROJECT/NAME for another project's), or in 'any'; without --for "
        "until its end.",
    ),
    click.option(
        "--or",
        "others",
        multiple=True,
        metavar="ALTERNATIVE",
        help=f"What would do as well: {OR_EXAMPLE}.",
    ),
)
_WINDOW: Final = (
    click.option(
        "--not-before",
        default="",
        metavar="TIME",
        help="Earliest start: '2027-05-03 09:00' in your zone, with an offset, or +30m.",
    ),
    click.option("--not-after", default="", metavar="TIME", help="Latest start, written the same way."),
)
