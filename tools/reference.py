"""Writes the pages of docs/reference that follow from the code: `python -m tools.reference`.

Commands, HTTP methods, events, metrics, errors and machine types are described where they are defined;
a page written beside them by hand would drift. `tests/architecture/test_docs.py` fails when a committed
page is not what this would write.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
import sys
import typing
from collections.abc import Callable, Iterator
from pathlib import Path

import click
import msgspec

from dws.api.http import all_methods
from dws.api.method import Method
from dws.cli.main import SECTIONS, cli
from dws.model import catalog, errors
from dws.model import events as ev
from dws.model.request import RequestState
from dws.telemetry.metrics import EngineMetrics
from tools import compute_reference

REFERENCE = Path(__file__).parents[1] / "docs" / "reference"
NATIVE = "/dws/"
SHARED = ("output", "tz", "project", "address", "token_file")
NOTE = "<!-- Written by `make docs` from the code; do not edit. -->\n\n"


def pages() -> dict[str, str]:
    """Every generated page by file name."""
    makers: dict[str, Callable[[], Iterator[str]]] = {
        "commands.md": commands,
        "compute.md": compute_reference.page,
        "http-api.md": http_api,
        "events.md": events,
        "errors.md": error_kinds,
        "metrics.md": metrics,
        "machine-types.md": machine_types,
    }
    return {name: NOTE + "\n".join(make()).rstrip() + "\n" for name, make in makers.items()}


# --- commands ---------------------------------------------------------------------------------


def commands() -> Iterator[str]:
    """Every command with its options, in the order of `dws --help`."""
    yield "# Commands\n"
    yield paragraph(cli.help)
    yield "Every command takes `--help`. Exit codes are in [exit-codes.md](exit-codes.md), environment"
    yield "variables in [environment.md](environment.md).\n"
    context = click.Context(cli, info_name="dws")
    yield "## Options of every command that asks a server\n"
    shared = cli.get_command(context, "describe")
    assert shared is not None
    yield from option_table([p for p in shared.params if p.name in SHARED])
    for title, section in SECTIONS.items():
        yield f"## {title}\n"
        for name in section:
            command = cli.get_command(context, name)
            assert command is not None
            yield from one_command(f"dws {name}", command)


def one_command(path: str, command: click.Command) -> Iterator[str]:
    """A command, and those inside it."""
    yield f"### {path}\n"
    if isinstance(command, click.Group):
        yield paragraph(command.help)
        for name, inner in sorted(command.commands.items()):
            yield from one_command(f"{path} {name}", inner)
        return
    context = click.Context(command, info_name=path)
    usage = " ".join([path, *command.collect_usage_pieces(context)])
    yield f"```\n{usage}\n```\n"
    yield paragraph(command.help)
    yield from option_table([p for p in command.params if p.name not in SHARED])


def option_table(params: list[click.Parameter]) -> Iterator[str]:
    """Options and their meanings, nothing when there are none."""
    options = [p for p in params if isinstance(p, click.Option) and not p.hidden]
    if not options:
        return
    yield "| Option | Meaning |\n|---|---|"
    for option in options:
        yield f"| {option_names(option)} | {cell(option.help or '')}{default_of(option)} |"
    yield ""


def option_names(option: click.Option) -> str:
    """`-o`, `--output table|json|yaml`."""
    if option.is_flag:
        value = ""
    elif isinstance(option.type, click.Choice):
        value = " " + "|".join(map(str, option.type.choices))
    else:
        value = f" {option.metavar or option.type.name.upper()}"
    names = ", ".join([*option.opts, *option.secondary_opts])
    return f"`{cell(names + value)}`"


def default_of(option: click.Option) -> str:
    """` Default: `table`.` where the option shows its default."""
    if not option.show_default or option.default is None:
        return ""
    return f" Default: `{option.default}`."


def paragraph(text: str | None) -> str:
    """A help text: sentences as they are, an example as code."""
    plain = inspect.cleandoc(text or "")
    said, *example = re.split(r"\x08\nExamples?:\n", plain)
    told = said.strip() + "\n"
    return f"{told}\n```\n{inspect.cleandoc(example[0])}\n```\n" if example else told


# --- HTTP -------------------------------------------------------------------------------------


def http_api() -> Iterator[str]:
    """Every method of every door, and the structs that the native one takes and gives."""
    native = [m for m in all_methods() if m.path.startswith(NATIVE)]
    others = [m for m in all_methods() if not m.path.startswith(NATIVE)]
    yield "# HTTP API\n"
    yield "Bodies are JSON. The native door, `/dws/v1/`, also serves its OpenAPI 3.1 document at"
    yield "`/dws/v1/openapi.json`; `/healthz` and `/metrics` are for operators. A failing call answers the"
    yield "envelope described in [errors.md](errors.md).\n"
    yield "- [Methods of the native door](#methods-of-the-native-door)"
    yield "- [Bodies of the native door](#bodies-of-the-native-door)"
    yield "- [Other doors](#other-doors)\n"
    yield "## Methods of the native door\n"
    for method in native:
        yield from one_method(method)
    yield "## Bodies of the native door\n"
    asked = tuple(m.request for m in native if m.request is not None)
    for kind in structs(native):
        yield f"### {kind.__name__}\n"
        yield inspect.cleandoc(kind.__doc__ or "") + "\n"
        yield "| Field | Type |\n|---|---|"
        for field in msgspec.structs.fields(kind):
            needed = ", required" if field.required and kind in asked else ""
            yield f"| `{field.encode_name}` | {cell(type_name(field.type))}{needed} |"
        yield ""
    yield "## Other doors\n"
    yield "Bodies are as the public API of the same path defines them; what of them does something is in"
    yield "[compute.md](compute.md).\n"
    yield "| Method | Call | Meaning |\n|---|---|---|"
    for method in others:
        yield f"| `{method.id}` | `{method.verb} {cell(method.path)}` | {cell(method.summary)} |"


def one_method(method: Method) -> Iterator[str]:
    """What a method is called, takes and gives."""
    yield f"### {method.id}\n"
    yield f"`{method.verb} {method.path}`\n"
    yield method.summary + "\n"
    facts = [f"needs the role *{method.role.value}*"]
    if method.request is not None:
        facts.append(f"takes [{method.request.__name__}](#{method.request.__name__.lower()})")
    if method.streams:
        facts.append("gives a stream of server-sent events")
    elif method.response is not None:
        facts.append(f"gives [{method.response.__name__}](#{method.response.__name__.lower()})")
    if method.idempotent:
        facts.append("may be repeated safely with a `requestId`")
    yield "; ".join(facts)[:1].upper() + "; ".join(facts)[1:] + ".\n"
    fields = msgspec.structs.fields(method.query)
    if fields:
        yield "| Query | Type | Meaning |\n|---|---|---|"
        for field in fields:
            meaning = msgspec.json.schema(field.type).get("description", "")
            yield f"| `{field.encode_name}` | {cell(type_name(field.type))} | {cell(meaning)} |"
        yield ""


def structs(methods: list[Method]) -> list[type[msgspec.Struct]]:
    """Every struct that travels, by name: those of the methods and those inside them."""
    found: dict[str, type[msgspec.Struct]] = {}
    todo: list[object] = [t for m in methods for t in (m.request, m.response) if t is not None]
    while todo:
        kind = todo.pop()
        todo += typing.get_args(kind)
        if isinstance(kind, type) and issubclass(kind, msgspec.Struct) and kind.__name__ not in found:
            found[kind.__name__] = kind
            todo += [f.type for f in msgspec.structs.fields(kind)]
    return [found[name] for name in sorted(found)]


def type_name(kind: object) -> str:
    """A type as a person reads it: `list of text`, `text or null`."""
    origin, inner = typing.get_origin(kind), typing.get_args(kind)
    if origin is typing.Annotated:
        return type_name(inner[0])
    if origin in (list, tuple):
        return f"list of {type_name(inner[0])}"
    if origin is dict:
        return f"map of {type_name(inner[1])}"
    if inner:
        return " or ".join(type_name(part) for part in inner)
    plain = {str: "text", int: "whole number", float: "number", bool: "true or false", object: "anything"}
    if kind is type(None):
        return "null"
    return plain.get(kind, getattr(kind, "__name__", str(kind)))  # type: ignore[call-overload, no-any-return]


# --- events, errors, metrics, machines --------------------------------------------------------


def events() -> Iterator[str]:
    """Every kind of event with its body."""
    yield "# Events\n"
    yield "Everything that happened is recorded once, numbered without gaps, and never changed. Follow them"
    yield "with `GET /dws/v1/events:follow`; `dws audit` shows them. `kind` is one of these; `data` holds the"
    yield "fields named.\n"
    yield "| Kind | Meaning | Data |\n|---|---|---|"
    for kind in typing.get_args(ev.EventBody):
        fields = ", ".join(f"`{camel(f.name)}`" for f in dataclasses.fields(kind))
        yield f"| `{kind.__name__}` | {cell(inspect.cleandoc(kind.__doc__ or ''))} | {fields} |"
    yield "\nThe states of a request that these lead to:\n"
    yield ", ".join(f"`{state.value}`" for state in RequestState) + "."


def error_kinds() -> Iterator[str]:
    """Every error with its code and reason."""
    yield "# Errors\n"
    yield 'A failing call answers `{"error": {code, reason, message, status, field, details}}`. `code` is'
    yield "canonical, `reason` is stable and meant for programs, `message` names the field, the value and the"
    yield "limit. In Python each is an exception of the same name in `dws`.\n"
    yield "| Exception | HTTP status | `code` | `reason` | Meaning |\n|---|---|---|---|---|"
    todo: list[type[errors.DwsError]] = [errors.DwsError]
    while todo:
        kind = todo.pop(0)
        todo += [k for k in kind.__subclasses__() if k.__module__ == errors.__name__]
        meaning = cell(inspect.cleandoc(kind.__doc__ or ""))
        yield f"| `{kind.__name__}` | {kind.http_status} | `{kind.code}` | `{kind.reason}` | {meaning} |"


class _Nothing:
    """An engine at rest, so that the metrics read from it have something to read."""

    now = ledger_version = last_seq = oldest_due_s = stuck = 0
    states: typing.ClassVar[dict[RequestState, int]] = {}
    fragments = ()


def metrics() -> Iterator[str]:
    """Every metric served at /metrics."""
    exposed = EngineMetrics()
    exposed.watch(_Nothing)
    yield "# Metrics\n"
    yield "Served at `/metrics` in the format of Prometheus. Counters end in `_total`, histograms give"
    yield "`_bucket`, `_sum` and `_count`. Waits and promise errors are in seconds of domain time, the others"
    yield "in seconds of process time.\n"
    yield "| Metric | Kind | Meaning |\n|---|---|---|"
    for family in sorted(exposed.registry.collect(), key=lambda f: f.name):
        yield f"| `{family.name}` | {family.type} | {cell(family.documentation)} |"


def machine_types() -> Iterator[str]:
    """The built-in catalogue."""
    yield "# Machine types\n"
    yield "What a fleet file may name as `machine` and a request as `--machine` without declaring it. Numbers"
    yield "are those the public documentation states; memory is in GB.\n"
    yield "| Machine | Accelerators | Type | vCPUs | Memory |\n|---|---|---|---|---|"
    for shape in catalog.MACHINE_TYPES.values():
        accelerators = shape.accelerators or ""
        yield (
            f"| `{shape.name}` | {accelerators} | {shape.accelerator or '–'} | {shape.vcpus} | "
            f"{shape.memory_gb} |"
        )
    yield "\n## Names of accelerators\n"
    yield "Any of these names may be used where an accelerator is asked for or priced, as in `h100:16`.\n"
    yield "| Type | Also called |\n|---|---|"
    for full in dict.fromkeys(s.accelerator for s in catalog.MACHINE_TYPES.values() if s.accelerator):
        others = sorted(catalog.accelerator_names(full) - {full})
        yield f"| `{full}` | {', '.join(f'`{n}`' for n in others)} |"


def cell(text: str) -> str:
    """Text on one line that does not end a table's cell."""
    return re.sub(r"\s+", " ", text).strip().replace("|", "\\|")


def camel(name: str) -> str:
    """A field as it travels."""
    first, *rest = name.split("_")
    return first + "".join(part.title() for part in rest)


def main() -> None:
    """Write every page that differs."""
    for name, text in pages().items():
        path = REFERENCE / name
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")
            sys.stdout.write(f"wrote docs/reference/{name}\n")


if __name__ == "__main__":
    main()
