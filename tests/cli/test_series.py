"""Series and maintenance windows from the command: what is sent, what is asked first, what people read."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from click.testing import Result

from dws.model.errors import FailedPrecondition, NoRoom
from dws.wire import native_v1 as wire
from tests.cli.stub import NOW, PROJECT, Stub, a_series, a_window, instant, occurrence

Run = Callable[..., Result]
Golden = Callable[[str, str], None]
SERIES = f"{PROJECT}/series"
PLAN = "POST /dws/v1/maintenance"
GAP = wire.Missed(day="2027-01-04", start="2027-01-04T19:00:00Z", cause="needs 2 hosts; 1 of 4 free")
EVERY = "weekday 20:00-06:00 Europe/Berlin until 2027-04-01"


def nights() -> wire.Series:
    """Every state an occurrence may be in."""
    gap = wire.Missed(day="2027-01-18", start="2027-01-18T19:00:00Z", cause="needs 2 hosts; none of 4 free")
    return a_series(
        occurrence("2027-01-15", reservation="nights-20270115", state="FULFILLED"),
        occurrence("2027-01-18", missed=gap.cause),
        occurrence("2027-01-19", reservation="nights-20270119", state="CANCELLED"),
        occurrence("2027-01-20", reservation="exam", state="APPROVED"),
        occurrence(
            "2027-03-27",
            end="2027-03-28T04:00:00Z",
            books_at="2027-01-30T19:00:00Z",
            note="ends at 06:00 in summer time",
        ),
        missed=[GAP, gap],
    )


def test_series_describe(dws: Run, stub: Stub, golden: Golden) -> None:
    """Nobody could tell what is booked from what was missed and what is not booked yet."""
    stub.on(f"GET {SERIES}/nights", nights())
    golden("series-describe", dws("series", "describe", "nights").stdout)


def test_series_list(dws: Run, stub: Stub, golden: Golden) -> None:
    """One would have to describe each to learn when it comes next."""
    ended = a_series(name="old", state="CANCELLED", accelerators="", machine="a2-highgpu-8g", count=2)
    stub.on(f"GET {SERIES}", wire.SeriesList(items=[nights(), ended]))
    golden("series-list", dws("series").stdout)


def test_nothing_repeats(dws: Run, stub: Stub) -> None:
    """An empty list would look like a fault, and not say how to begin."""
    stub.on(f"GET {SERIES}", wire.SeriesList(items=[]))
    assert "dws reserve NAME --every" in dws("series", "list").stdout


def test_json_is_the_answer_of_the_api(dws: Run, stub: Stub) -> None:
    """A script would have to read a table."""
    stub.on(f"GET {SERIES}/nights", nights())
    told = json.loads(dws("series", "describe", "nights", "-o", "json").stdout)
    assert told["upcoming"][4]["booksAt"] == "2027-01-30T19:00:00Z"


def test_every_begins_a_series(dws: Run, stub: Stub) -> None:
    """What was said about each occurrence would be lost."""
    stub.on(f"POST {SERIES}", nights())
    done = dws(
        "reserve", "nights", "--accelerators", "h100:16", "--every", EVERY, "--may-miss", "--share", "vision:1"
    )  # fmt: skip
    assert done.exit_code == 0, done.output
    assert "nights is ACTIVE" in done.stdout
    (body,) = stub.bodies(f"POST {SERIES}")
    assert (body["every"], body["mayMiss"], body["accelerators"]) == (EVERY, True, "h100:16")
    assert body["shares"] == [{"project": "vision", "hostsMax": 1}]


@pytest.mark.parametrize(
    "args",
    [
        ("reserve", "nights", "--accelerators", "h100:16", "--every", EVERY),
        ("series", "amend", "nights", "--every", EVERY),
    ],
)
def test_each_day_that_does_not_fit_is_listed(dws: Run, stub: Stub, args: tuple[str, ...]) -> None:
    """A person would learn about one clash after another."""
    missed = [{"day": f"2027-01-{day}", "cause": f"needs 2 hosts on the {day}th"} for day in range(18, 26)]
    error = NoRoom("every: 8 of its occurrences cannot be booked", field="every", details={"missed": missed})
    stub.on(f"POST {SERIES}", error).on(f"PATCH {SERIES}/nights", error)
    done = dws(*args)
    assert (done.exit_code, done.stdout) == (5, "")
    assert done.stderr.splitlines()[0] == "dws: every: 8 of its occurrences cannot be booked"
    assert "2027-01-25: needs 2 hosts on the 25th" in done.stderr


def test_amend_sends_what_is_said_and_keeps_the_rest(dws: Run, stub: Stub) -> None:
    """Changing the size would lose the shares."""
    stub.on(f"PATCH {SERIES}/nights", nights())
    assert dws("series", "amend", "nights", "--count", "32").exit_code == 0
    assert dws("series", "amend", "nights", "--unshare", "--may-miss").exit_code == 0
    assert stub.bodies(f"PATCH {SERIES}/nights") == [{"count": 32}, {"shares": [], "mayMiss": True}]
    nothing = dws("series", "amend", "nights", "--may-miss")
    assert nothing.exit_code == 2 and "say what changes" in nothing.stderr


def test_skip_and_cancel(dws: Run, stub: Stub) -> None:
    """A holiday would cost the whole series."""
    stub.on(f"POST {SERIES}/nights:leaveOut", nights())
    stub.on(f"POST {SERIES}/nights:cancel", a_series(state="CANCELLED"))
    assert dws("series", "skip", "nights", "2027-01-25").exit_code == 0
    assert stub.bodies(f"POST {SERIES}/nights:leaveOut") == [{"day": "2027-01-25"}]
    assert dws("series", "cancel", "nights").stdout == "nights: CANCELLED\n"


@pytest.mark.parametrize(
    ("args", "told"),
    [
        (("--every", EVERY, "--for", "1h"), "--every says when"),
        (("--every", EVERY, "--dry-run"), "--every says when"),
        (("--start", "+1h", "--for", "1h", "--may-miss"), "--may-miss goes with --every"),
    ],
)
def test_what_contradicts_itself_is_refused(dws: Run, args: tuple[str, ...], told: str) -> None:
    """Half of what was typed would be ignored."""
    done = dws("reserve", "nights", "--accelerators", "h100:16", *args)
    assert done.exit_code == 2 and told in done.stderr


# --- maintenance ------------------------------------------------------------------------------

HIT = wire.Affected(
    name="spring", project="research", state="APPROVED", effect="would lack 2 hosts", hosts=["a3-0001"]
)
FANS = ("fleet", "maintenance", "plan", "fans", "a3-0001", "a3-0002", "--start", "+1d", "--for", "4h")


def told(*, touched: bool = False, planned: bool = False) -> wire.MaintenanceAnswer:
    window = a_window() if planned else None
    return wire.MaintenanceAnswer(affected=[HIT] if touched else [], window=window)


@pytest.fixture
def person(monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody sits at the terminal, and says yes."""
    monkeypatch.setattr("click.testing._NamedTextIOWrapper.isatty", lambda self: True, raising=False)
    monkeypatch.setattr("click.confirm", lambda *args, **kwargs: True)


@pytest.mark.usefixtures("person")
def test_a_window_is_planned_after_a_yes(dws: Run, stub: Stub) -> None:
    """Hosts would be taken away by a typing mistake."""
    stub.on(PLAN, [told(), told(planned=True)])
    done = dws(*FANS, "--reason", "new fans")
    assert done.exit_code == 0 and "Planned." in done.stdout
    assert "start: 2027-01-16 09:00:00 CET (Europe/Paris) = 2027-01-16T08:00:00Z" in done.stderr
    first, second = stub.bodies(PLAN)
    assert second == first | {"confirm": True}
    assert (first["start"], first["duration"]) == ("2027-01-16T08:00:00Z", "4h")
    assert (first["hosts"], first["reason"]) == (["a3-0001", "a3-0002"], "new fans")


@pytest.mark.usefixtures("person")
def test_h06_whom_it_touches_is_shown_and_needs_force(dws: Run, stub: Stub, golden: Golden) -> None:
    """A reservation would lose hosts because nobody looked."""
    stub.on(PLAN, told(touched=True))
    done = dws(*FANS)
    assert done.exit_code == 6
    assert [body.get("confirm", False) for body in stub.bodies(PLAN)] == [False]
    golden("maintenance-plan", done.stderr)
    stub.on(PLAN, [told(touched=True), told(touched=True, planned=True)])
    assert "Planned." in dws(*FANS, "--force").stdout


def test_a_script_says_yes_and_is_refused_by_the_server(dws: Run, stub: Stub) -> None:
    """A script would plan over a reservation, or hang at a question."""
    assert dws(*FANS, "--start", "+1d").exit_code != 0
    refusal = FailedPrecondition("hosts: the window would touch spring", field="hosts")
    stub.on(PLAN, told(touched=True))
    asked = dws(*FANS, "--dry-run", "-o", "json")
    assert json.loads(asked.stdout)["affected"][0]["name"] == "spring"
    assert dws(*FANS, "-o", "json").exit_code == 2, "nobody is there to ask"
    stub.on(PLAN, [told(touched=True), refusal])
    done = dws(*FANS, "--yes")
    assert done.exit_code == 6 and "would touch spring" in done.stderr


def test_maintenance_list_and_cancel(dws: Run, stub: Stub, golden: Golden) -> None:
    """Nobody would know which hosts are going, and when they are back."""
    begun = a_window(name="discs", hosts=["a3-0003"], begun=True, start=instant(NOW - 3600), reason="")
    stub.on("GET /dws/v1/maintenance", wire.MaintenanceList(items=[begun, a_window()]))
    golden("maintenance-list", dws("fleet", "maintenance").stdout)
    stub.on("DELETE /dws/v1/maintenance/fans", {})
    assert dws("fleet", "maintenance", "cancel", "fans").stdout == "fans is cancelled.\n"


@pytest.mark.parametrize("length", [(), ("--for", "4h", "--until", "+2d")])
def test_how_long_is_said_once(dws: Run, length: tuple[str, ...]) -> None:
    """A window would last for ever, or be cut by the option that came second."""
    done = dws("fleet", "maintenance", "plan", "fans", "a3-0001", "--start", "+1d", *length)
    assert done.exit_code == 2 and "say how long" in done.stderr
