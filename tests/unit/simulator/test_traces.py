"""Workloads: read from files, or made with published statistics."""

from __future__ import annotations

import gzip
from itertools import pairwise
from pathlib import Path
from statistics import mean, median

import pytest

from dws.model.errors import InvalidArgument
from dws.simulator.traces import Job, read
from dws.simulator.traces.generated import PROFILES, generate

SWF = """\
; Version: 2.2
; MaxNodes: 128
;MaxProcs: 512
; Note: a comment

1  100 5 60 4 -1 -1 8 120 -1 1 7 -1 -1 -1 -1 -1 -1
2  40 5 30.0 4 -1 -1 -1 -1 -1 0 -1 -1 -1 -1 -1 -1 -1
3  120 -1 -1 0 -1 -1 8 120 -1 5 7 -1 -1 -1 -1 -1 -1
4  130 0 10 0 -1 -1 0 120 -1 1 7 -1 -1 -1 -1 -1 -1
"""
PHILLY = """\
submit_s,run_s,gpus,vc,status,req_walltime_s
50,600,8,blue,Pass,900
10,60.0,1,red,Killed,
20,60,0,red,Pass,60
30,0,2,red,Failed,60
"""


def written(tmp_path: Path, name: str, text: str) -> Path:
    path = tmp_path / name
    if name.endswith(".gz"):
        path.write_bytes(gzip.compress(text.encode()))
    else:
        path.write_text(text)
    return path


@pytest.mark.parametrize("name", ["log.swf", "log.swf.gz"])
def test_standard_workload_format(tmp_path: Path, name: str) -> None:
    """A published log would be read wrongly, or run out of order."""
    trace = read(written(tmp_path, name, SWF))
    first, second = trace.jobs
    assert first == Job(submit_s=40, run_s=30, requested_s=0, size=4, user="", status="failed")
    assert second == Job(submit_s=100, run_s=60, requested_s=120, size=8, user="7", status="completed")
    assert (trace.source, trace.unit, trace.capacity, trace.skipped) == (name, "processor", 512, 2)


@pytest.mark.parametrize("name", ["jobs.csv", "jobs.csv.gz"])
def test_a_table_of_gpu_jobs(tmp_path: Path, name: str) -> None:
    """A GPU trace would be read by the wrong columns, or with jobs that never ran."""
    trace = read(written(tmp_path, name, PHILLY))
    first, second = trace.jobs
    assert first == Job(submit_s=10, run_s=60, requested_s=0, size=1, user="red", status="killed")
    assert second == Job(submit_s=50, run_s=600, requested_s=900, size=8, user="blue", status="pass")
    assert (trace.unit, trace.capacity, trace.skipped) == ("GPU", 0, 2)


def test_a_table_with_creation_and_deletion_instead_of_a_length(tmp_path: Path) -> None:
    """Traces of clusters that log pods could not be used."""
    text = "name,creation_time,deletion_time,num_gpu,pod_phase\na,100,160,2,Succeeded\nb,100,,2,Pending\n"
    trace = read(written(tmp_path, "pods.csv", text))
    assert trace.jobs == (Job(submit_s=100, run_s=60, requested_s=0, size=2, status="succeeded"),)
    assert trace.skipped == 1


def test_a_table_without_gpus_counts_nodes(tmp_path: Path) -> None:
    """A CPU cluster's trace would come out empty."""
    text = "submit_s,run_s,nodes,gpus\n0,60,3,0\n5,60,1,\n"
    trace = read(written(tmp_path, "nodes.csv", text))
    assert [job.size for job in trace.jobs] == [3, 1] and trace.unit == "node"


@pytest.mark.parametrize(
    ("name", "text", "words"),
    [
        ("jobs.txt", "", r"neither \.swf nor \.csv"),
        ("jobs.gz", "", r"neither \.swf nor \.csv"),
        ("a.swf", "1 2 3\n", r"a\.swf, line 1: not a line of Standard Workload Format"),
        ("a.swf", "; fine\n1 2 3 4 5 6 7 8 9 10 11 many\n", r"a\.swf, line 2"),
        ("a.swf", "1 2 3 inf 5 6 7 8 9 10 11 12\n", r"a\.swf, line 1"),
        ("a.csv", "", r"a\.csv: no column says when .* its columns: none"),
        ("a.csv", "when,length\n1,2\n", r"no column says when a job was submitted .*: when, length"),
        ("a.csv", "submit_s,gpus\n1,2\n", r"no column says how long it ran \(run_s or deletion_time\)"),
        ("a.csv", "submit_s,run_s\n", r"no column says how large it was \(gpus or num_gpu or nodes\)"),
        ("a.csv", "submit_s,run_s,gpus\n0,60,1\n0,soon,1\n", r"a\.csv, line 3: .*'soon'"),
        ("a.csv", "submit_s,run_s,gpus\n0,inf,1\n", r"a\.csv, line 2"),
        ("a.csv", "submit_s,run_s,gpus\n0,nan,1\n", r"a\.csv, line 2"),
    ],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, name: str, text: str, words: str) -> None:
    """Somebody with a trace that cannot be read would get a traceback, or figures of nothing."""
    path = tmp_path / name
    path.write_text(text)
    with pytest.raises(InvalidArgument, match=words) as caught:
        read(path)
    assert caught.value.field == "trace"


@pytest.mark.parametrize("damage", ["missing", "a folder", "no gzip", "cut short", "garbled", "not text"])
def test_a_file_that_cannot_be_read_is_said(tmp_path: Path, damage: str) -> None:
    """A damaged download would end in a traceback."""
    path = tmp_path / "jobs.csv.gz"
    packed = gzip.compress((PHILLY + "5,60,1,red,Pass,60\n" * 2_000).encode(), mtime=0)
    match damage:
        case "a folder":
            path.mkdir()
        case "no gzip":
            path.write_text(PHILLY)
        case "cut short":
            path.write_bytes(packed[:-20])
        case "garbled":
            path.write_bytes(packed[:12] + b"\xff\x00\xff" * 20 + packed[40:])
        case "not text":
            path.write_bytes(gzip.compress(b"submit_s,\xff\xfe"))
    with pytest.raises(InvalidArgument, match="cannot read"):
        read(path)


def test_columns_left_over_are_no_trouble(tmp_path: Path) -> None:
    """One odd line could make a trace of a hundred thousand unreadable."""
    text = "submit_s,run_s,gpus\n0,60,1,more,and more\n5,60\n"
    trace = read(written(tmp_path, "odd.csv", text))
    assert len(trace.jobs) == 1 and trace.skipped == 1


# --- generated --------------------------------------------------------------------------------


@pytest.mark.parametrize("profile", PROFILES)
def test_a_generated_workload_has_the_published_statistics(profile: str) -> None:
    """Figures of a generated workload would say nothing about the cluster it is named after."""
    known = PROFILES[profile]
    jobs = generate(profile, jobs=40_000, capacity=512).jobs
    runs, sizes = [j.run_s for j in jobs], [j.size for j in jobs]
    assert median(runs) == pytest.approx(known.median_run_s, rel=0.05)
    assert mean(runs) == pytest.approx(known.mean_run_s, rel=0.35), "its tail is cut at seven days"
    expected = sum(size * share for size, share in known.sizes.items())
    assert mean(sizes) == pytest.approx(expected, rel=0.05)
    assert sum(known.sizes.values()) == pytest.approx(1) == pytest.approx(sum(known.outcomes.values()))
    completed = sum(j.status == "completed" for j in jobs) / len(jobs)
    assert completed == pytest.approx(known.outcomes["completed"], abs=0.02)


def test_a_generated_workload_offers_the_load_asked_for() -> None:
    """A policy would be judged at another load than the one on the label."""
    for load in (0.5, 0.9):
        trace = generate("helios", jobs=20_000, capacity=256, load=load)
        span = trace.jobs[-1].submit_s - trace.jobs[0].submit_s
        assert sum(j.size * j.run_s for j in trace.jobs) / (256 * span) == pytest.approx(load, rel=0.02)


def test_generated_jobs_come_in_order_fit_and_ask_for_enough() -> None:
    """Jobs could be larger than the fleet, or run past what they asked for."""
    trace = generate("helios", jobs=2_000, capacity=8)
    assert trace.jobs[0].submit_s == 0 and trace.capacity == 8
    assert all(a.submit_s <= b.submit_s for a, b in pairwise(trace.jobs))
    assert all(1 <= j.size <= 8 and j.run_s <= j.requested_s for j in trace.jobs)
    assert "not a recorded trace" in trace.notes[0]


def test_a_seed_makes_the_same_jobs_and_another_makes_others() -> None:
    """Two policies could not be compared on the same workload."""
    again = [generate("philly", jobs=200, capacity=64, seed=seed).jobs for seed in (1, 1, 2)]
    assert again[0] == again[1] != again[2]


@pytest.mark.parametrize("load", [0, -1.0, float("nan"), float("inf")])
def test_an_impossible_load_is_refused(load: float) -> None:
    """The generator could look for arrivals for ever."""
    with pytest.raises(InvalidArgument, match="must be positive"):
        generate("philly", jobs=10, capacity=8, load=load)


def test_an_unknown_profile_is_refused() -> None:
    """A misspelt cluster would silently be another one."""
    with pytest.raises(InvalidArgument, match=r"no 'phily' .*philly, helios"):
        generate("phily", jobs=10, capacity=8)
