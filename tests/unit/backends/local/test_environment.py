"""What a program finds in its environment."""

from __future__ import annotations

from pathlib import Path

from dws.backends.local import environment
from dws.engine.ports import InstanceOrder, Order
from dws.model.request import Workload
from dws.model.resources import MachineShape

INSTANCE = InstanceOrder(rank=1, unit=1, host="local-1", environment={"TPU_WORKER_ID": "3"})


def build(own: dict[str, str] | None = None, devices: tuple[str, ...] = ()) -> dict[str, str]:
    """The environment of rank 1 of 2."""
    order = Order(
        key="5-1",
        request=5,
        request_name="train",
        project="research",
        pool="local-accelerators",
        zone="local",
        shape=MachineShape(name="local-1g"),
        instances=(INSTANCE,),
        size=2,
        workload=Workload(command=("true",), environment=own or {}),
        environment={"DWS_ARRAY_INDEX": "4", "DWS_ATTEMPT": "1"},
        runs_until=1_800_000_000,
        duration_s=60,
        grace_s=5,
        issued_at=1_799_999_940,
    )
    return environment.build(
        order,
        INSTANCE,
        devices,
        Path("/state/deadline"),
        23_456,
        mark="/state/instances/5-1/1",
        base={"PATH": "/bin", "PYTHONUNBUFFERED": "0"},
    )


def test_the_workload_has_the_last_word_over_what_it_may_choose() -> None:
    """A program could not be told its own port, path or buffering."""
    seen = build({"PATH": "/opt", "MASTER_PORT": "1", "EXTRA": "x", "DWS_SERVER": "http://here"})
    assert (seen["PATH"], seen["MASTER_PORT"], seen["EXTRA"]) == ("/opt", "1", "x")
    assert seen["DWS_SERVER"] == "http://here"


def test_what_a_program_was_given_is_not_its_to_choose() -> None:
    """A left-over variable would put a program on somebody else's accelerator, or hide it from its end."""
    wrong = dict.fromkeys((*build(), "NVIDIA_VISIBLE_DEVICES"), "wrong")
    seen = build(wrong, ("GPU-a", "GPU-b"))
    assert {k: v for k, v in seen.items() if k.startswith("DWS_") and v == "wrong"} == {}
    assert seen["CUDA_VISIBLE_DEVICES"] == seen["NVIDIA_VISIBLE_DEVICES"] == "GPU-a,GPU-b"


def test_what_the_engine_says_arrives() -> None:
    """An element of an array would not know which one it is."""
    seen = build()
    assert (seen["DWS_ARRAY_INDEX"], seen["DWS_ATTEMPT"]) == ("4", "1")
    assert (seen["DWS_RANK"], seen["DWS_SIZE"], seen["DWS_HOST"]) == ("1", "2", "local-1")
    assert seen["TPU_WORKER_ID"] == "3", "what is said of one instance alone"
    assert seen["DWS_DEADLINE"] == "2027-01-15T08:00:00Z"


def test_only_harmless_variables_are_inherited() -> None:
    """Programs of any user of the server would see its secrets."""
    server = {"PATH": "/bin", "LC_ALL": "C", "AWS_SECRET_ACCESS_KEY": "s", "DWS_TOKEN": "s"}
    assert environment.inherited(server) == {"PATH": "/bin", "LC_ALL": "C"}
    assert "DWS_TOKEN" not in environment.inherited(server, ["*"])
