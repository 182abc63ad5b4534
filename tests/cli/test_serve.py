"""`dws serve`: what its options make of a server, before one is started."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import click
import pytest
from click.testing import Result

from dws.cli import policy, serve
from dws.model.errors import InvalidArgument

Run = Callable[..., Result]


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """What would have been served."""
    calls: list[object] = []
    monkeypatch.setattr(serve, "_serve", lambda settings, door: calls.extend((settings, door)))
    return calls


def test_options_become_settings(dws: Run, started: list[object], tmp_path: Path) -> None:
    """An option of the server would be taken and forgotten."""
    rules = tmp_path / "policy.toml"
    rules.write_text('max_wait_age_s = "2d"\nwarning_leads_s = ["30m", 60]\non_host_loss = "requeue"\n')
    done = dws(
        "serve", "--fleet", "demo", "--clock", "virtual", "--start", "2027-01-15 09:00", "--speed", "60",
        "--listen", "[::1]:9000", "--accelerators", "h100:4", "--state-dir", str(tmp_path / "s"),
        "--db", "memory:", "--policy", str(rules), "--name", "head.example",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    settings, door = started
    assert (settings.fleet, settings.clock, settings.speed) == ("demo", "virtual", 60)  # type: ignore[attr-defined]
    assert settings.start == 1_800_000_000  # type: ignore[attr-defined]
    assert (settings.db_url, settings.accelerators) == ("memory:", "h100:4")  # type: ignore[attr-defined]
    assert settings.state_dir == tmp_path / "s"  # type: ignore[attr-defined]
    assert settings.policy.max_wait_age_s == 172_800  # type: ignore[attr-defined]
    assert settings.policy.warning_leads_s == (1_800, 60)  # type: ignore[attr-defined]
    assert settings.policy.on_host_loss == "requeue"  # type: ignore[attr-defined]
    assert (door.host, door.port, door.names) == ("::1", 9000, ("head.example",))  # type: ignore[attr-defined]


def test_settings_of_backends_come_from_a_file(dws: Run, started: list[object], tmp_path: Path) -> None:
    """A check before the start could be had by those alone who build a server themselves."""
    file = tmp_path / "backends.toml"
    file.write_text('[local]\nhealth_check = "true"\nhealth_check_timeout_s = "1m"\n')
    done = dws("serve", "--backends", str(file), "--state-dir", str(tmp_path))
    assert done.exit_code == 0, done.stderr
    found = started[0].backends  # type: ignore[attr-defined]
    assert found == {"local": {"health_check": "true", "health_check_timeout_s": 60}}


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        ("[local]\nhealth_chek = 1\n", 2, "did you mean 'health_check'?"),
        ("[local]\n\ngrace_s = 'soon'\n", 3, "'soon' is not a duration"),
        ("\n[slurm]\n", 2, "no backend 'slurm' is installed"),
        ("[local\n", 1, "not TOML"),
        ("local = 1\n", 1, "expected a table"),
    ],
)
def test_a_mistake_in_it_is_at_its_line(dws: Run, tmp_path: Path, text: str, line: int, message: str) -> None:
    """A misspelt check would be no check at all."""
    file = tmp_path / "backends.toml"
    file.write_text(text)
    done = dws("serve", "--backends", str(file), "--state-dir", str(tmp_path))
    assert done.exit_code == 2
    assert f"{file}:{line}: " in done.stderr
    assert message in done.stderr


@pytest.mark.parametrize("listen", ["0.0.0.0:8470", "10.0.0.1:80", "[::]:8470"])
def test_tokens_do_not_travel_in_the_clear_by_mistake(dws: Run, started: list[object], listen: str) -> None:
    """Everyone on the network could read the tokens and run programs."""
    assert dws("serve", "--listen", listen).exit_code == 2
    assert not started
    assert dws("serve", "--listen", listen, "--insecure-without-tls").exit_code == 0


@pytest.mark.parametrize("listen", ["8470", "localhost", "host:port", "h:70000"])
def test_where_to_listen_is_checked(listen: str) -> None:
    """A server would listen somewhere else than its owner meant."""
    with pytest.raises(click.UsageError, match="HOST:PORT"):
        serve.address_of(listen)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("queue_deep = 3", "there is no setting 'queue_deep'"),
        ('queue_depth = "many"', "queue_depth"),
        ('max_wait_age_s = "soon"', "max_wait_age_s: 'soon' is not a duration"),
        ("run_duration_min_s = 0", "run_duration_min_s"),
        ("= 3", "policy.toml"),
    ],
)
def test_a_mistake_in_a_policy_is_named(text: str, message: str) -> None:
    """A server would run under another policy than its owner wrote."""
    with pytest.raises(InvalidArgument) as caught:
        policy.parse(text, source="policy.toml")
    assert message in caught.value.message
