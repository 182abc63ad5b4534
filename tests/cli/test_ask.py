"""What a command line asks for is what reaches the server."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

from dws.cli import demand
from dws.wire import native_v1 as wire
from tests.cli.stub import PROJECT, REQUESTS, Stub, a_quote, a_request, waiting

Run = Callable[..., Result]
ASK = ("--accelerators", "h100:16", "--for", "4h")
POST = f"POST {REQUESTS}"


@pytest.fixture
def asking(stub: Stub) -> Stub:
    return stub.on(POST, {"items": [a_request()]}).on(f"GET {REQUESTS}/train-a", waiting())


def test_everything_said_is_sent(dws: Run, asking: Stub) -> None:
    """An option would be taken and silently forgotten."""
    done = dws(
        "submit", *ASK, "--within", "block", "--zone", "z1", "--region", "r2",
        "--or", "a100:16 for 8h in us-central1-b,us-central1-c", "--or", "2 x a3-highgpu-8g within block",
        "--wait", "2h", "--priority", "7", "--label", "team=vision", "--label", "run=5",
        "--env", "LR=0.1", "--env", "EMPTY=", "--workdir", "/data", "--signal-before", "10m",
        "--on-host-loss", "requeue", "--name", "train-a", "--array", "3",
        "--not-after", "2027-02-01T00:00:00Z", "--", "python", "train.py", "--lr", "1",
    )  # fmt: skip
    assert done.exit_code == 0, done.stderr
    assert asking.bodies(POST) == [
        {
            "alternatives": [
                {
                    "duration": "4h",
                    "accelerators": "h100:16",
                    "locations": ["z1", "r2"],
                    "within": "block",
                },
                {
                    "duration": "8h",
                    "accelerators": "a100:16",
                    "locations": ["us-central1-b", "us-central1-c"],
                },
                {"duration": "4h", "machine": "a3-highgpu-8g", "count": 2, "within": "block"},
            ],
            "name": "train-a",
            "wait": "2h",
            "notAfter": "2027-02-01T00:00:00Z",
            "priority": 7,
            "labels": {"team": "vision", "run": "5"},
            "workload": {
                "command": ["python", "train.py", "--lr", "1"],
                "environment": {"LR": "0.1", "EMPTY": ""},
                "directory": "/data",
                "signalBefore": "10m",
            },
            "onHostLoss": "requeue",
            "array": 3,
        }
    ]


def test_a_program_needs_no_dashes_before_it(dws: Run, asking: Stub) -> None:
    """The program's own options would be taken for ours."""
    assert dws("submit", *ASK, "python", "train.py", "--for", "ever").exit_code == 0
    assert asking.bodies(POST)[0]["workload"]["command"] == ["python", "train.py", "--for", "ever"]


def test_a_program_runs_where_it_was_asked_for(
    dws: Run, asking: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`python train.py` would not find train.py."""
    monkeypatch.chdir(tmp_path)
    dws("submit", *ASK, "--", "python", "train.py")
    assert asking.bodies(POST)[0]["workload"]["directory"] == str(tmp_path)


def test_a_machine_is_one_unless_more_are_said(dws: Run, asking: Stub) -> None:
    """--machine without --count would be refused, or ask for none."""
    dws("submit", "--machine", "a3-highgpu-8g", "--for", "8h")
    assert asking.bodies(POST)[0]["alternatives"] == [
        {"duration": "8h", "machine": "a3-highgpu-8g", "count": 1}
    ]


def test_submit_prints_the_name_and_tells_the_outlook_aside(dws: Run, asking: Stub) -> None:
    """NAME=$(dws submit …) would hold prose."""
    done = dws("submit", *ASK)
    assert done.stdout == "train-a\n"
    assert done.stderr.startswith(
        "train-a: place 3 in line, expected in 2h05m (11:05 Europe/Paris); needs 2 free"
    )


def test_an_array_prints_a_name_for_each_element(dws: Run, stub: Stub) -> None:
    """A script could not go over the elements."""
    stub.on(POST, {"items": [waiting(name=f"s-{i}") for i in range(3)]}).on(f"GET {REQUESTS}/s-0", waiting())
    assert dws("submit", *ASK, "--array", "3").stdout == "s-0\ns-1\ns-2\n"


@pytest.mark.parametrize(
    ("args", "message"),
    [
        ((), "say what you want"),
        (("--for", "4h"), "say what you want"),
        (("--accelerators", "h100:16"), "for how long"),
        (("--accelerators", "h100", "--for", "4h"), "TYPE:COUNT"),
        (("--accelerators", "h100:8", "--machine", "m", "--for", "4h"), "either"),
        (("--accelerators", "h100:8", "--count", "2", "--for", "4h"), "--count goes with --machine"),
        (("--accelerators", "h100:8", "--for", "1.5h"), "'1.5h' is not a duration"),
        ((*ASK, "--or", "some gpus"), "is not understood"),
        ((*ASK, "--label", "team"), "KEY=VALUE"),
        ((*ASK, "--env", "A=1"), "need a program"),
        ((*ASK, "--wait-for", "2h"), "No such option"),
    ],
)
def test_a_mistake_is_a_usage_error_and_asks_nothing(
    dws: Run, stub: Stub, args: tuple[str, ...], message: str
) -> None:
    """A mistyped command would ask for something else, or show a traceback."""
    for verb in ("submit", "run", "quote"):
        if verb == "quote" and {"--label", "--env"} & set(args):
            continue
        done = dws(verb, *args)
        assert done.exit_code == 2
        assert done.stderr.startswith("dws: ")
        assert message in done.stderr
    assert not stub.bodies(POST)


def test_c06_b04_durations_reach_the_server_as_written(dws: Run, stub: Stub) -> None:
    """A length would be rounded or refused here that the server accepts."""
    for spelling in ("90m", "1h30m", "5400s", "5400"):
        stub.on(f"POST {PROJECT}:quote", a_quote())
        assert dws("quote", "--accelerators", "h100:16", "--for", spelling).exit_code == 0
    sent = [body["alternatives"][0]["duration"] for body in stub.bodies(f"POST {PROJECT}:quote")]
    assert sent == ["90m", "1h30m", "5400s", "5400"]


def test_a_sentence_reads_what_it_writes() -> None:
    """What `dws list` shows could not be given to --or again."""
    from dws.cli.demand import parse_alternative, words

    for text in (
        "h100:16 for 4h",
        "a100:16 for 8h in us-central1-b within block",
        "8 x a3-highgpu-8g for 1h within block together 4/subblock apart 4/subblock near",
        "2 x a3-highgpu-8g for 1d12h in us-central1-a,us-central1-b",
    ):
        assert words(parse_alternative(text, duration="1h")) == text


def test_the_project_is_the_one_named(dws: Run, stub: Stub, monkeypatch: pytest.MonkeyPatch) -> None:
    """A request would be charged to another project."""
    monkeypatch.setenv("DWS_PROJECT", "vision")
    stub.on("POST /dws/v1/projects/vision:quote", a_quote())
    stub.on("POST /dws/v1/projects/speech:quote", a_quote())
    assert dws("quote", *ASK).exit_code == 0
    assert dws("quote", *ASK, "--project", "speech").exit_code == 0


# --- slices -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        ("--tpu v5e --topology 4x8", {"accelerators": "v5e:1", "topology": "4x8"}),
        ("--tpu v5e --topology 4x8 --count 3", {"accelerators": "v5e:3", "topology": "4x8"}),
        ("--tpu v5litepod-16 --count 2", {"accelerators": "v5litepod-16:2"}),
        ("--accelerators v5litepod-16", {"accelerators": "v5litepod-16"}),
        ("--accelerators v5p:1 --topology 4x4x8", {"accelerators": "v5p:1", "topology": "4x4x8"}),
        (
            "--machine ct5lp-hightpu-4t --count 2 --topology 4x4",
            {"machine": "ct5lp-hightpu-4t", "count": 2, "topology": "4x4"},
        ),
    ],
)
def test_a_slice_is_asked_for_by_topology_or_by_name(
    dws: Run, asking: Stub, said: str, sent: dict[str, object]
) -> None:
    """A slice could not be asked for on the command line, or another would come."""
    done = dws("submit", *said.split(), "--for", "4h")
    assert done.exit_code == 0, done.stderr
    assert asking.bodies(POST)[0]["alternatives"] == [{"duration": "4h", **sent}]


def test_another_slice_will_do_as_well(dws: Run, asking: Stub) -> None:
    """What --or says of a slice would be another machine, or not be understood."""
    said = ("v5e:2 4x8 for 1h", "v5litepod-16 in z1", "3 x v5p-128", "2 x ct5lp-hightpu-4t 4x4", "2 x v5e 4x4")
    done = dws("submit", *ASK, *(word for text in said for word in ("--or", text)))
    assert done.exit_code == 0, done.stderr
    assert asking.bodies(POST)[0]["alternatives"][1:] == [
        {"duration": "1h", "accelerators": "v5e:2", "topology": "4x8"},
        {"duration": "4h", "accelerators": "v5litepod-16:1", "locations": ["z1"]},
        {"duration": "4h", "accelerators": "v5p-128:3"},
        {"duration": "4h", "machine": "ct5lp-hightpu-4t", "count": 2, "topology": "4x4"},
        {"duration": "4h", "accelerators": "v5e:2", "topology": "4x4"},
    ]
    sent = [wire.Alternative(**a) for a in asking.bodies(POST)[0]["alternatives"]]
    told = [demand.words(a) for a in sent]
    assert told[1:] == [
        "2 x v5e 4x8 for 1h", "v5litepod-16 for 4h in z1", "3 x v5p-128 for 4h",
        "2 x ct5lp-hightpu-4t 4x4 for 4h", "2 x v5e 4x4 for 4h",
    ]  # fmt: skip
    assert [demand.parse_alternative(text, duration="") for text in told] == sent


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("--tpu v5e --topology 3x3", "v5e has no slice '3x3'; it has 1x1, 2x2, 2x4"),
        ("--tpu v5e --topology 1x8", "of 8 chips it has 2x4"),
        ("--tpu v5litepod-17", "there is no 'v5litepod-17'; near are v5litepod-4, v5litepod-8"),
        ("--accelerators v5litepod-17", "near are v5litepod-4, v5litepod-8"),
        ("--tpu v5e", "needs a topology as well, for example one of 1x1, 2x2"),
        ("--tpu h100", "is no TPU; say one of v4, v5e"),
        ("--tpu v5e --topology 4x4 --machine a3-highgpu-8g", "say what you want"),
        ("--accelerators h100:8 --or v5litepod-17", "near are v5litepod-4"),
    ],
)
def test_j03_a_slice_that_cannot_be_is_refused_with_those_that_can(
    dws: Run, asking: Stub, said: str, told: str
) -> None:
    """A person would have to guess which slices there are, and a request that never starts would wait."""
    done = dws("submit", *said.split(), "--for", "4h")
    assert done.exit_code == 2
    assert told in done.stderr
    assert not asking.bodies(POST)


def test_together_apart_and_near_are_sent(dws: Run, asking: Stub) -> None:
    """Machines that must not share a rack could be asked for through the API alone."""
    done = dws("submit", *ASK, "--together", "2/rack", "--apart", "4/rack", "--near", "--name", "train-a")
    assert done.exit_code == 0, done.stderr
    done = dws("submit", *ASK, "--apart", "rack", "--or", "2 x a3-highgpu-8g apart host", "--name", "train-a")
    assert done.exit_code == 0, done.stderr
    first, second = asking.bodies(POST)
    (asked,) = first["alternatives"]
    assert (asked["grouping"], asked["near"]) == ({"level": "rack", "together": 2, "atMost": 4}, True)
    assert [a["grouping"] for a in second["alternatives"]] == [
        {"level": "rack", "atMost": 1},
        {"level": "host", "atMost": 1},
    ]
    for wrong in (("--together", "rack"), ("--apart", "x/rack"), ("--together", "2/rack", "--apart", "block")):
        assert dws("submit", *ASK, *wrong).exit_code == 2
