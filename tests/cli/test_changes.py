"""Commands that change something: what they send, what they ask first, what they print."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from dws.cli.main import cli
from dws.wire import native_v1 as wire
from tests.cli.stub import NOW, REQUESTS, Stub, a_request, instant, running, waiting

Run = Callable[..., Result]
CHANGE = "POST /dws/v1/fleet:changeHosts"
APPLY = "POST /dws/v1/fleet:apply"


# --- requests ---------------------------------------------------------------------------------


def test_amend_changes_what_is_named_and_keeps_the_rest(dws: Run, stub: Stub) -> None:
    """Shortening a request would forget its block, or its second choice."""
    forms = [
        wire.Alternative(accelerators="h100:16", duration="14400s", within="block"),
        wire.Alternative(accelerators="a100:16", duration="28800s"),
    ]
    stub.on(f"GET {REQUESTS}/train-a", waiting(alternatives=forms))
    stub.on(f"PATCH {REQUESTS}/train-a", waiting())
    assert dws("amend", "train-a", "--for", "2h", "--wait", "6h").exit_code == 0
    assert stub.bodies(f"PATCH {REQUESTS}/train-a") == [
        {
            "alternatives": [
                {"duration": "2h", "accelerators": "h100:16", "within": "block"},
                {"duration": "28800s", "accelerators": "a100:16"},
            ],
            "wait": "6h",
        }
    ]


def test_amend_changes_the_slice(dws: Run, stub: Stub) -> None:
    """A larger slice could be had only by giving up one's place in line, or would come as GPUs and TPUs both."""
    form = wire.Alternative(accelerators="v5e:2", topology="4x4", duration="14400s")
    stub.on(f"GET {REQUESTS}/train-a", waiting(alternatives=[form]))
    stub.on(f"PATCH {REQUESTS}/train-a", waiting())
    for said in (("--topology", "4x8"), ("--tpu", "v6e-64"), ("--accelerators", "h100:8")):
        assert dws("amend", "train-a", *said).exit_code == 0
    sent = [body["alternatives"][0] for body in stub.bodies(f"PATCH {REQUESTS}/train-a")]
    assert sent == [
        {"duration": "14400s", "accelerators": "v5e:2", "topology": "4x8"},
        {"duration": "14400s", "accelerators": "v6e-64:1"},
        {"duration": "14400s", "accelerators": "h100:8"},
    ]


def test_amend_of_the_priority_sends_no_demand(dws: Run, stub: Stub) -> None:
    """Changing a priority would quietly rewrite what is asked."""
    stub.on(f"PATCH {REQUESTS}/train-a", waiting())
    dws("amend", "train-a", "--priority", "0")
    assert stub.bodies(f"PATCH {REQUESTS}/train-a") == [{"priority": 0}]


def test_amend_of_nothing_is_a_mistake(dws: Run, stub: Stub) -> None:
    """A forgotten option would look like a success."""
    assert dws("amend", "train-a").exit_code == 2
    assert not stub.bodies(f"PATCH {REQUESTS}/train-a")


def test_cancel_takes_several(dws: Run, stub: Stub) -> None:
    """Cleaning up would take a command for each request."""
    for name in ("train-a", "train-b"):
        stub.on(f"POST {REQUESTS}/{name}:cancel", a_request(name=name, state="CANCELLED"))
    done = dws("cancel", "train-a", "train-b", "-o", "json")
    assert [r["name"] for r in json.loads(done.stdout)] == ["train-a", "train-b"]


def test_release_of_some_instances(dws: Run, stub: Stub) -> None:
    """Giving back two hosts would give back all."""
    stub.on(f"POST {REQUESTS}/train-a:release", running())
    dws("release", "train-a", "--rank", "2", "--rank", "3")
    assert stub.bodies(f"POST {REQUESTS}/train-a:release") == [{"ranks": [2, 3]}]


@pytest.mark.parametrize(
    ("args", "applied", "code", "said"),
    [
        (("3h",), 0, 6, "the longest is 1h of 3h"),
        (("3h", "--at-most"), 3_600, 0, "1h longer, until 2027-01-15 13:50:00 CET"),
        (("3h", "--dry-run"), 0, 6, "the longest is 1h of 3h"),
    ],
)
def test_i03_an_extension_tells_the_longest_possible(
    dws: Run, stub: Stub, args: tuple[str, ...], applied: int, code: int, said: str
) -> None:
    """Someone who needs more time would have to guess how much there is."""
    request = running()
    assert request.grant is not None
    request.grant.ends_at = instant(NOW + 13_800 + applied)
    answer = wire.ExtendAnswer(
        request=request,
        asked_s=10_800,
        longest_s=3_600,
        applied_s=applied,
        reason=wire.Reason(
            code="PROMISED", message="", text="promised from {at:time}", facts={"at": NOW + 17_400}
        ),
    )
    stub.on(f"POST {REQUESTS}/train-a:extend", answer)
    done = dws("extend", "train-a", *args)
    assert done.exit_code == code
    assert said in done.stdout
    assert "promised from Fri 15 Jan 13:50 CET" in done.stdout


# --- hosts ------------------------------------------------------------------------------------


def affecting(*, confirmed: bool) -> wire.ChangeHostsAnswer:
    hit = wire.Affected(
        name="train-a", project="default", state="ACTIVE", effect="runs on to its end", hosts=["h1"]
    )
    return wire.ChangeHostsAnswer(hosts=["h1"], state="DRAINING", affected=[hit], confirmed=confirmed)


def test_a_drain_shows_whom_it_affects_and_does_it_after_a_yes(
    dws: Run, stub: Stub, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An operator would hit someone's run without knowing."""
    stub.on(CHANGE, [affecting(confirmed=False), affecting(confirmed=True)])
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    done = CliRunner().invoke(cli, ["fleet", "drain", "h1"], obj=stub.machine(), input="y\n", prog_name="dws")
    assert done.exit_code == 0, done.stderr
    assert "default/train-a" in done.stderr
    assert [body.get("confirm", False) for body in stub.bodies(CHANGE)] == [False, True]


def test_a_no_changes_nothing(stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """Saying no would drain the host all the same."""
    stub.on(CHANGE, affecting(confirmed=False))
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    done = CliRunner().invoke(cli, ["fleet", "drain", "h1"], obj=stub.machine(), input="n\n", prog_name="dws")
    assert [body.get("confirm", False) for body in stub.bodies(CHANGE)] == [False]
    assert "Nothing was changed." in done.stdout


def test_where_nobody_can_be_asked_yes_must_be_said(dws: Run, stub: Stub) -> None:
    """A script would drain hosts unconfirmed, or hang at a question."""
    stub.on(CHANGE, affecting(confirmed=False))
    done = dws("fleet", "drain", "h1")
    assert done.exit_code == 2
    assert "--yes" in done.stderr
    assert [body.get("confirm", False) for body in stub.bodies(CHANGE)] == [False]


def test_a_dry_run_only_tells(dws: Run, stub: Stub) -> None:
    """Nobody could look at the effect of a failure without causing it."""
    stub.on(CHANGE, affecting(confirmed=False))
    done = dws("fleet", "outage", "h1", "--dry-run", "-o", "json")
    assert json.loads(done.stdout)["affected"][0]["name"] == "train-a"
    assert [body.get("confirm", False) for body in stub.bodies(CHANGE)] == [False]


def test_an_outage_until_a_time_is_told_in_utc(dws: Run, stub: Stub) -> None:
    """Hosts would be expected back an hour early or late."""
    stub.on(CHANGE, affecting(confirmed=True))
    dws("fleet", "outage", "h1", "--until", "2027-01-15 18:00", "--reason", "power", "--yes")
    assert stub.bodies(CHANGE)[-1] == {
        "hosts": ["h1"],
        "state": "DOWN",
        "reason": "power",
        "until": "2027-01-15T17:00:00Z",
        "confirm": True,
    }


def test_apply_sends_the_file_first_to_be_judged(dws: Run, stub: Stub, tmp_path: Path) -> None:
    """A new fleet would be applied unseen."""
    path = tmp_path / "fleet.toml"
    path.write_text('currency = "EUR"\n')
    judged = wire.ApplyFleetAnswer(version=3, lines=["pool a3: 4 hosts more"], applied=False)
    applied = wire.ApplyFleetAnswer(version=4, lines=["pool a3: 4 hosts more"], applied=True)
    stub.on(APPLY, [judged, applied])
    done = dws("fleet", "apply", str(path), "--yes")
    assert done.stdout == "pool a3: 4 hosts more\nApplied.\n"
    assert [body.get("confirm", False) for body in stub.bodies(APPLY)] == [False, True]
    assert stub.bodies(APPLY)[0]["toml"] == 'currency = "EUR"\n'


# --- time, ledger, store ----------------------------------------------------------------------


def test_clock_advance_reads_durations(dws: Run, stub: Stub) -> None:
    """`dws clock advance 7d` would not move a week."""
    stub.on("POST /dws/v1/clock:advance", wire.Clock(now=instant(NOW), epoch=NOW, virtual=True))
    for text in ("7d", "3600s", "3600"):
        assert dws("clock", "advance", text).exit_code == 0
    assert [body["by"] for body in stub.bodies("POST /dws/v1/clock:advance")] == [604_800, 3_600, 3_600]


def test_clock_run_lets_time_pass_until_interrupted(dws: Run, stub: Stub) -> None:
    """Virtual time would stand still, or run at another speed."""
    pauses = iter(range(6))

    def pause(_s: float) -> None:
        if next(pauses) == 5:
            raise KeyboardInterrupt

    stub.on("POST /dws/v1/clock:advance", wire.Clock(now=instant(NOW), epoch=NOW, virtual=True))
    done = dws("clock", "run", "--speed", "8", machine=stub.machine(pause=pause))
    assert done.exit_code == 0
    assert sum(body["by"] for body in stub.bodies("POST /dws/v1/clock:advance")) == 8


def test_a_ledger_with_faults_is_a_failure(dws: Run, stub: Stub) -> None:
    """A nightly check would pass over a broken ledger."""
    broken = wire.Verification(bookings=2, requests=1, events=9, faults=["booking 7 has no owner"])
    stub.on("GET /dws/v1/ledger:verify", broken)
    done = dws("ledger", "verify")
    assert done.exit_code == 1
    assert "booking 7 has no owner" in done.stdout


def test_a_backup_goes_where_the_user_is(
    dws: Run, stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The copy would be written into the server's working directory."""
    monkeypatch.chdir(tmp_path)
    stub.on("POST /dws/v1/backup", {})
    dws("backup", "copy.db")
    assert stub.bodies("POST /dws/v1/backup") == [{"path": str(tmp_path / "copy.db")}]
