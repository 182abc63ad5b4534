"""One word, one meaning: words that the glossary bans do not appear where people read.

The list is short on purpose. Each of these has a word of ours for the same thing, or already means
something else to the people who use accelerators.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from dws.cli.main import cli

ROOT = Path(__file__).parents[2]

BANNED = {
    r"\bMIGs?\b": "instance group, or partition of an accelerator: the abbreviation means both",
    r"\bproviders?\b": "backend",
    r"\bplug-?ins?\b": "backend",
    r"\bcordon(ed|s|ing)?\b": "drain",
    r"\bevict(ed|s|ing|ions?)?\b": "preemption, or loss of a host",
    r"\btenants?\b": "project",
    r"\bSKUs?\b": "machine shape",
    r"\bbacklogs?\b": "queue",
    r"\bgantt\b": "calendar",
    r"\blook-?ahead\b": "horizon",
    r"\bwall-?time\b": "run duration",
    r"\bsuperpods?\b": "block",
    r"\bsoft bookings?\b": "hold",
    r"\bgap filling\b": "backfill",
    r"\bdowntime\b": "maintenance window, or outage",
}


def commands(group: click.Group, path: str = "dws") -> Iterator[tuple[str, click.Command]]:
    """Every command with its path."""
    context = click.Context(group, info_name=path)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        yield f"{path} {name}", command
        if isinstance(command, click.Group):
            yield from commands(command, f"{path} {name}")


def public_text() -> Iterator[tuple[str, str]]:
    """Where people read: documentation and the help of every command."""
    for page in [ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if page.exists():
            yield str(page.relative_to(ROOT)), page.read_text(encoding="utf-8")
    for path, command in [("dws", cli), *commands(cli)]:
        yield f"{path} --help", command.get_help(click.Context(command, info_name=path))


TEXTS = dict(public_text())


@pytest.mark.parametrize("where", TEXTS, ids=lambda w: w.replace(" ", "-"))
def test_no_banned_word_where_people_read(where: str) -> None:
    """A reader would meet two words for one thing, or one word for two."""
    text = re.sub(r"^```hcl\n.*?^```$", "", TEXTS[where], flags=re.DOTALL | re.MULTILINE)  # Terraform's words
    if where == "docs/explanation/glossary.md":
        text = re.sub(r"\*[^*\n]+\*", "", text)  # the glossary names, in italics, the words it bans
    found = [
        f"'{m.group()}': say {ours}" for word, ours in BANNED.items() for m in re.finditer(word, text, re.I)
    ]
    assert found == []
