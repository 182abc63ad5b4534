"""What people read is true: every page that follows from the code is current, what is written by hand names
everything there is, every link leads somewhere, every command and every file shown is accepted."""

from __future__ import annotations

import ast
import dataclasses
import inspect
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
from tools import reference

from dws.backends import registry
from dws.backends.simulated.faults import Faults
from dws.bootstrap import Settings, read_backends
from dws.cli import policy
from dws.cli.exits import Exit
from dws.cli.main import cli
from dws.declared import fleetfile
from dws.model.request import EndReason, RequestState
from dws.model.reservation import ReservationState
from dws.planner.options import PolicyOptions

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
SOURCE = ROOT / "src" / "dws"
PAGES = [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]
IDS = [str(p.relative_to(ROOT)) for p in PAGES]
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def page(name: str) -> str:
    return (DOCS / "reference" / name).read_text(encoding="utf-8")


def sources() -> Iterator[tuple[Path, str]]:
    for path in sorted(SOURCE.rglob("*.py")):
        yield path, path.read_text(encoding="utf-8")


@pytest.mark.parametrize("name", reference.pages())
def test_a_generated_page_is_current(name: str) -> None:
    """The reference would describe commands, methods or events that are not there; run `make docs`."""
    assert page(name) == reference.pages()[name], f"docs/reference/{name} is not current: run `make docs`"


def test_every_setting_of_the_policy_is_documented_with_its_default() -> None:
    """An operator could not know what a setting does, or what it is when not set."""
    rows = dict(re.findall(r"^\| `(\w+)` \| (.*?) \|", page("policy.md"), re.MULTILINE))
    defaults = PolicyOptions()
    assert rows.keys() == PolicyOptions.__dataclass_fields__.keys()
    for name, shown in rows.items():
        value = getattr(defaults, name)
        text = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        assert shown.replace("`", "").split(" (")[0] == text, name


def test_every_setting_of_a_server_is_documented() -> None:
    """An operator could not know what can be set."""
    rows = re.findall(r"^\| `(\w+)` \| ", page("server.md"), re.MULTILINE)
    assert {f.name for f in dataclasses.fields(Settings)} <= {*rows}


def test_every_setting_of_a_backend_is_documented_with_its_default() -> None:
    """An operator could not know that a check before the start can be had, or how."""
    for name in ("local", "simulated"):
        part = page("backends.md").split(f"\n## `{name}`")[1].split("\n## ")[0]
        rows = dict(re.findall(r"^\| `(\w+)` \|(.*?)\|", part, re.MULTILINE))
        takes = inspect.signature(registry.available()[name].load()).parameters
        assert rows.keys() >= registry.settings_of(name).keys()
        for setting in registry.settings_of(name):
            if isinstance(takes[setting].default, int):
                assert rows[setting].strip() == str(takes[setting].default), setting
    faults = {f.name for f in dataclasses.fields(Faults)}
    assert faults <= {*re.findall(r"`(\w+)`", page("backends.md"))}


def test_every_exit_code_is_documented() -> None:
    """A script could not tell why a command failed."""
    rows = re.findall(r"^\| (\d+) \|", page("exit-codes.md"), re.MULTILINE)
    assert rows == [str(e.value) for e in Exit]


def test_every_reason_is_documented() -> None:
    """A person would be given a code that nothing explains."""
    codes = set()
    for _, text in sources():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Call) and ast.unparse(node.func).endswith("Reason"):
                codes |= {
                    ast.literal_eval(k.value) for k in node.keywords if k.arg == "code" and is_text(k.value)
                }
    assert codes
    assert codes == {*re.findall(r"^\| `([A-Z_]+)` \|", page("reasons.md"), re.MULTILINE)}


def is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def test_every_state_and_end_is_documented() -> None:
    """A person would see a state that nothing explains."""
    rows = {*re.findall(r"^\| `([A-Z_]+)` \|", page("requests.md"), re.MULTILINE)}
    assert rows == {*RequestState} | {*EndReason}
    reservations = {*re.findall(r"^\| `([A-Z_]+)` \|", page("reservations.md"), re.MULTILINE)}
    assert reservations == {*ReservationState}


def test_every_environment_variable_is_documented() -> None:
    """A program or a script would depend on something nobody can look up."""
    used = {name for _, text in sources() for name in re.findall(r'"(_?DWS_[A-Z_]+[A-Z])"', text)}
    for path, text in sources():
        if path.parent == SOURCE / "backends" / "local":
            used |= {
                *re.findall(r'"((?:MASTER|NODE|LOCAL|WORLD|CUDA|NVIDIA|PET)_[A-Z_]+|N?RANK|NNODES)"', text)
            }
    written = {*re.findall(r"`(_?[A-Z][A-Z_]+)`", page("environment.md"))}
    assert used - written == set()


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_links_lead_somewhere(path: Path) -> None:
    """A reader would be sent to a page or a heading that is not there."""
    text = re.sub(BLOCK, "", path.read_text(encoding="utf-8"))
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if target.startswith(("http://", "https://")):
            continue
        name, _, anchor = target.partition("#")
        file = (path.parent / name).resolve() if name else path
        assert file.is_file(), f"{target} is not there"
        if anchor:
            assert anchor in anchors(file), f"{target}: no such heading"


def anchors(path: Path) -> set[str]:
    """The anchors of a page's headings, as forges make them."""
    headings = re.findall(r"^#+ (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", h.lower()).replace(" ", "-") for h in headings}


def test_every_page_can_be_reached() -> None:
    """A page would be written and never found."""
    seen, todo = {DOCS / "index.md"}, [DOCS / "index.md"]
    while todo:
        path = todo.pop()
        for name in re.findall(r"\]\(([^)#\s:]+\.md)", path.read_text(encoding="utf-8")):
            found = (path.parent / name).resolve()
            if found not in seen and found.is_file():
                seen.add(found)
                todo.append(found)
    assert [str(p.relative_to(DOCS)) for p in sorted(DOCS.rglob("*.md")) if p not in seen] == []


def shown_commands(text: str) -> Iterator[str]:
    """Every `dws …` line in the code blocks of a page."""
    for language, block in BLOCK.findall(text):
        if language in ("console", "sh", ""):
            for line in block.splitlines():
                command = line.removeprefix("$ ").partition("#")[0].rstrip("& ").strip()
                if command.startswith("dws ") and "[" not in command and "…" not in command:
                    yield command


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_commands_shown_are_accepted(path: Path) -> None:
    """A person would copy a command that does not exist, or an option that it does not take."""
    for command in shown_commands(path.read_text(encoding="utf-8")):
        accept(command)


def accept(line: str) -> None:
    """Fails when the command line names an unknown command or option, or lacks an argument."""
    words = shlex.split(line)[1:]
    command: click.Command = cli
    context = click.Context(cli, info_name="dws")
    while isinstance(command, click.Group) and words:
        inner = command.get_command(context, words[0])
        if inner is None:
            assert getattr(command, "default", None), f"{line}: no command '{words[0]}'"
            inner = command.get_command(context, command.default)  # type: ignore[attr-defined]
            words = ["", *words]
        assert inner is not None
        command, words = inner, words[1:]
        context = click.Context(command, info_name=command.name, parent=context)
    if isinstance(command, click.Group):
        return
    parser = command.make_parser(context)
    try:
        parser.parse_args(args=list(words))
    except click.UsageError as error:
        pytest.fail(f"{line}: {error.format_message()}")


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_files_shown_are_accepted(path: Path, tmp_path: Path) -> None:
    """A person would copy a fleet file, a policy or settings of backends that the server refuses."""
    for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        if language != "toml" or "[[token]]" in block:
            continue
        if "[[" in block:
            fleetfile.parse(block)
        elif "[local]" in block:
            file = tmp_path / "backends.toml"
            file.write_text(block, encoding="utf-8")
            read_backends(file)
        else:
            policy.parse(block, source=path.name)


@pytest.mark.parametrize("path", PAGES, ids=IDS)
def test_python_shown_compiles_and_uses_what_there_is(path: Path) -> None:
    """A person would copy Python that calls something the client does not have."""
    import dws

    for language, block in BLOCK.findall(path.read_text(encoding="utf-8")):
        if language != "python":
            continue
        for node in ast.walk(ast.parse(block)):
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                owner = {"dws": dws, "client": dws.Client}.get(node.value.id)
                assert owner is None or hasattr(owner, node.attr), f"{node.value.id}.{node.attr}"
