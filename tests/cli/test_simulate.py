"""`dws simulate`: traces, generated workloads and breaking, without a server."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from click.testing import Result

from dws.simulator import breaking, command
from dws.simulator.breaking import run as breaking_run

Run = Callable[..., Result]

TRACE = "submit_s,run_s,gpus,user\n0,100,4,ann\n10,50,2,bob\n10,50,2,\n0,60,9,ann\n5,0,1,ann\n"


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "jobs.csv"
    path.write_text(TRACE)
    return str(path)


def test_a_trace_in_words(dws: Run, trace: str, golden: Callable[[str, str], None]) -> None:
    """People could not read how a workload went."""
    done = dws("simulate", "--trace", trace, "--hosts", "4")
    assert done.exit_code == 0, done.stderr
    told = re.sub(r"in [\d.]+ s: [\d,]+ requests/s", "in X s: N requests/s", done.stdout)
    golden("simulate", re.sub(r"99 % within [\d.]+ ms", "99 % within X ms", told))


def test_a_trace_as_data(dws: Run, trace: str) -> None:
    """A script could not read the figures, or would miss what was left out."""
    args = ("simulate", "--trace", trace, "--hosts", "4", "--block", "2", "-o")
    done = dws(*args, "json")
    told = json.loads(done.stdout)
    assert set(told) == {
        "source", "unit", "notes", "hosts", "estimates", "skipped", "leftOut", "offeredLoad", "figures",
        "requestsPerS", "wallS", "planningPasses", "planningP99S",
    }  # fmt: skip
    assert (told["source"], told["hosts"], told["skipped"], told["leftOut"]) == ("jobs.csv", 4, 1, 1)
    assert told["figures"]["requests"] == 3 and told["figures"]["wait_max"] == 90
    assert yaml.safe_load(dws(*args, "yaml").stdout)["figures"] == told["figures"]


def test_a_generated_workload_says_that_it_is_one(dws: Run) -> None:
    """Made-up jobs could be taken for a recorded trace."""
    args = ("simulate", "--jobs", "40", "--hosts", "64", "--profile", "helios", "--estimates", "exact", "-o", "json")
    told = json.loads(dws(*args).stdout)
    assert (told["hosts"], told["estimates"], told["figures"]["requests"]) == (64, "exact", 40)
    assert told["source"].startswith("generated like helios") and "not a recorded trace" in told["notes"][0]


def test_a_policy_file_is_used(dws: Run, trace: str, tmp_path: Path) -> None:
    """Two policies would be compared and the same one run twice."""
    rules = tmp_path / "policy.toml"
    rules.write_text('promise_horizon_s = "1s"\nprotected_depth = 0\nmax_wait_age_s = "30d"\n')
    args = ("simulate", "--trace", trace, "--hosts", "4", "-o", "json")
    plain = json.loads(dws(*args).stdout)["figures"]["promised"]
    assert json.loads(dws(*args, "--policy", str(rules)).stdout)["figures"]["promised"] < plain


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("--trace", "nowhere.csv"), "cannot read nowhere.csv"),
        (("--trace", "jobs.parquet"), "neither .swf nor .csv"),
        (("--trace", "odd.csv"), "no column says when a job was submitted"),
        (("--trace", "odd.swf"), "odd.swf, line 1"),
        (("--trace", "jobs.csv"), "give --hosts"),
        (("--trace", "jobs.csv", "--hosts", "0"), "give --hosts"),
        (("--trace", "jobs.csv", "--hosts", "1"), "none of the 4 jobs fits 1 hosts"),
        (("--trace", "jobs.csv", "--hosts", "-1"), "-1 is not in the range"),
        (("--trace", "jobs.csv", "--break"), "leave out --trace"),
        (("--load", "0"), "must be positive"),
        (("--load", "nan"), "must be positive"),
        (("--profile", "phily"), "'phily' is not one of"),
        (("--policy", "nowhere.toml"), "does not exist"),
        (("--policy", "odd.toml"), "there is no setting 'depth'"),
        (("--break", "seven"), "'seven' is not a whole number"),
        (("--break", "1", "--seeds", "0"), "0 is not in the range"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, tuple) else "",
)
def test_what_is_wrong_is_said_in_one_line(
    dws: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, args: tuple[str, ...], words: str
) -> None:
    """A slip of the keyboard would end in a traceback."""
    (tmp_path / "jobs.csv").write_text(TRACE.replace(",4,", ",3,"))
    (tmp_path / "odd.csv").write_text("when,who\n1,2\n")
    (tmp_path / "odd.swf").write_text("hello\n")
    (tmp_path / "odd.toml").write_text("depth = 1\n")
    monkeypatch.chdir(tmp_path)
    done = dws("simulate", *args)
    assert done.exit_code == 2, (done.stdout, done.stderr)
    assert words in done.stderr and "Traceback" not in done.stderr and done.stdout == ""


# --- breaking ---------------------------------------------------------------------------------


def test_breaking_tells_a_line_a_seed_and_the_rate(dws: Run) -> None:
    """Nobody would know which seeds were run, or how many a night allows."""
    done = dws("simulate", "--break", "2", "--seeds", "2", "--steps", "20")
    assert done.exit_code == 0, done.stdout
    first, second, last = done.stdout.splitlines()
    assert re.match(r"seed 2: ok, \d+ commands, \d+ events, \d+ crashes, \d+ s$", first)
    assert second.startswith("seed 3: ok")
    assert re.fullmatch(r"2 seeds, nothing broken \(\d+\.\d\d seeds/s\)", last)


def _broken(seed: int, *, steps: int = 0) -> breaking.Outcome:
    fault = "a host was given to two" if seed == 5 else ""
    return breaking.Outcome(seed=seed, steps=steps, fault=fault, story=("      0 #1 it began",))


@pytest.fixture
def fifth_breaks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[int, int]]:
    """Seeds are run by a stand-in that finds a fault in the fifth; which ones, and how long."""
    ran: list[tuple[int, int]] = []

    def run(seed: int, *, steps: int) -> breaking.Outcome:
        ran.append((seed, steps))
        return _broken(seed, steps=steps)

    monkeypatch.setattr(command.breaking, "run", run)
    return ran


@pytest.mark.parametrize(
    ("args", "first"),
    [
        (("--break", "4", "--seeds", "9", "--steps", "7"), 4),
        (("--forever", "--steps", "7"), 0),
        (("--break", "--forever", "--steps", "7"), 0),
        (("--break", "5", "--steps", "7"), 5),
        (("--seeds", "6", "--steps", "7"), 0),
    ],
)
def test_what_breaks_ends_it_with_a_failing_status(
    dws: Run, fifth_breaks: list[tuple[int, int]], args: tuple[str, ...], first: int
) -> None:
    """A nightly run could break something, and be green."""
    done = dws("simulate", *args)
    assert done.exit_code == 1
    assert fifth_breaks == [(seed, 7) for seed in range(first, 6)]
    *_, story, blank, fault, again = done.stdout.splitlines()
    assert (story, blank, fault) == ("      0 #1 it began", "", "BROKEN: a host was given to two")
    assert re.fullmatch(r"seed 5, opendws \S.*, replay: dws simulate --break 5 --steps 7", again)
    assert "nothing broken" not in done.stdout + done.stderr


def test_the_usual_length_is_not_repeated(dws: Run, fifth_breaks: list[tuple[int, int]]) -> None:
    """The command printed for a replay could run another story."""
    dws("simulate", "--break", "5")
    assert fifth_breaks == [(5, breaking_steps())]


def breaking_steps() -> int:
    defaults: Any = breaking_run.__kwdefaults__
    return int(defaults["steps"])


def test_outcomes_as_data_are_one_json_object_a_line(dws: Run, fifth_breaks: list[tuple[int, int]]) -> None:
    """A program that runs seeds all night could not read what they came to."""
    done = dws("simulate", "--break", "4", "--seeds", "9", "-o", "json")
    fine, broken = [json.loads(line) for line in done.stdout.splitlines()]
    assert (fine["seed"], fine["ok"], fine["story"]) == (4, True, [])
    assert (broken["seed"], broken["ok"], broken["fault"]) == (5, False, "a host was given to two")
    assert broken["story"] == ["      0 #1 it began"] and broken["replay"].startswith("dws simulate --break 5")
    assert done.exit_code == 1


def test_who_stops_it_learns_how_far_it_came(dws: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """Ctrl-C after a night would lose the count, or look like a failure."""

    def run(seed: int, *, steps: int) -> breaking.Outcome:
        if seed == 3:
            raise KeyboardInterrupt
        return _broken(seed, steps=steps)

    monkeypatch.setattr(command.breaking, "run", run)
    done = dws("simulate", "--forever")
    assert done.exit_code == 0 and "stopped" in done.stderr
    assert done.stdout.splitlines()[-1].startswith("3 seeds, nothing broken")
