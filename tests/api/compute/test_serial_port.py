"""What runs in an instance and what it says: real programs on this machine, records elsewhere."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dws.bootstrap import Settings, open_system
from tests.api.compute.test_instances import FLEX, VMS, insert
from tests.api.served import Served, serving
from tests.conformance.compute.schema import faults

LOCAL = "/compute/v1/projects/research/zones/local"
SCRIPT = """\
#!/usr/bin/env python3
import os
print("héllo from", "python, rank", os.environ["DWS_RANK"], flush=True)
"""


@pytest.fixture
def machine(tmp_path: Path) -> Iterator[Served]:
    """A server over this machine, on the real clock."""
    quick = {"local": {"setup_s": 1, "grace_s": 5, "teardown_s": 1}}
    settings = Settings(db="memory:", state_dir=tmp_path / "state", accelerators="h100:2", backends=quick)
    system = open_system(settings)
    system.start()
    with serving(tmp_path, system) as server:
        yield server
        wait_for(lambda: not _delete_all(server))


def _delete_all(server: Served) -> list[Any]:
    """Deletes the instances and gives those still there: their programs outlive a server, and would the tests."""
    left: list[Any] = server.owner.get(f"{LOCAL}/instances").json().get("items", [])
    for instance in left:
        server.owner.delete(f"{LOCAL}/instances/{instance['name']}")
    return left


def wait_for(what: Callable[[], Any], seconds: float = 30) -> Any:
    """The first answer that is not empty."""
    until = time.monotonic() + seconds
    while not (found := what()):
        assert time.monotonic() < until, "it did not come"
        time.sleep(0.1)
    return found


def shape(served: Served) -> str:
    """The machine type of this machine's accelerators."""
    types = served.owner.get(f"{LOCAL}/machineTypes").json()["items"]
    return str(next(t["name"] for t in types if t.get("accelerators")))


def scripts(startup: str, shutdown: str = "") -> dict[str, Any]:
    """Metadata with scripts."""
    told = {"startup-script": startup, "shutdown-script": shutdown}
    return {"items": [{"key": key, "value": value} for key, value in told.items() if value]}


def port(served: Served, path: str, **query: Any) -> dict[str, Any]:
    """A serial port's output, valid as the public service describes it."""
    found = served.owner.get(f"{path}/serialPort", params=query)
    assert found.status_code == 200, found.text
    assert faults("v1", "SerialPortOutput", found.json()) == []
    return dict(found.json())


def said(served: Served, path: str, word: str) -> dict[str, Any]:
    """Its output, once a word is in it."""

    def look() -> dict[str, Any] | None:
        found = port(served, path)
        return found if word in found["contents"] else None

    return dict(wait_for(look))


def test_the_startup_script_runs_on_this_machine(machine: Served, tmp_path: Path) -> None:
    """An instance would be a record of nothing; or be gone when its script is over, with what it printed."""
    mark = tmp_path / "shut-down"
    metadata = scripts(SCRIPT, f"echo bye; echo done > {mark}")
    body = {"name": "v1", "machineType": shape(machine), "metadata": metadata}
    assert machine.owner.post(f"{LOCAL}/instances", json=body).status_code == 200
    where = f"{LOCAL}/instances/v1"
    first = said(machine, where, "exit status 0")
    assert first["contents"] == "héllo from python, rank 0\nstartup-script: exit status 0\n"
    assert (first["start"], first["next"]) == ("0", str(len(first["contents"].encode())))
    wait_for(lambda: machine.owner.get(where).json()["status"] == "RUNNING")
    rest = port(machine, where, start=first["next"])
    assert (rest["contents"], rest["start"], rest["next"]) == ("", first["next"], first["next"])
    assert port(machine, where, start=7)["contents"].startswith("from python")
    assert port(machine, where, start=-2)["contents"] == "0\n"
    assert port(machine, where, port=2)["contents"] == ""
    assert machine.owner.get(f"{where}/serialPort", params={"port": 5}).status_code == 400
    machine.owner.post(f"{where}/stop")
    wait_for(lambda: machine.owner.get(where).json()["status"] == "TERMINATED")
    assert mark.read_text() == "done\n"
    assert "bye\n" in port(machine, where)["contents"]


def test_a_script_that_fails_leaves_its_instance(machine: Served) -> None:
    """Nobody could look at what went wrong."""
    body = {"name": "v1", "machineType": shape(machine), "metadata": scripts("echo oh >&2\nexit 3")}
    machine.owner.post(f"{LOCAL}/instances", json=body)
    assert said(machine, f"{LOCAL}/instances/v1", "status 3")["contents"].startswith("oh\n")
    wait_for(lambda: machine.owner.get(f"{LOCAL}/instances/v1").json()["status"] == "RUNNING")


def test_the_instances_of_a_group_run_their_script_too(machine: Served) -> None:
    """A gang asked for as a group would hold accelerators and do nothing."""
    script = "echo rank $DWS_RANK of $DWS_SIZE"
    properties = {"machineType": shape(machine), "scheduling": FLEX, "metadata": scripts(script)}
    template = {"name": "t", "properties": properties}
    machine.owner.post("/compute/v1/projects/research/global/instanceTemplates", json=template)
    group = {"name": "g", "instanceTemplate": "global/instanceTemplates/t"}
    machine.owner.post(f"{LOCAL}/instanceGroupManagers", json=group)
    wish = {"name": "r", "resizeBy": 2}
    machine.owner.post(f"{LOCAL}/instanceGroupManagers/g/resizeRequests", json=wish)
    found = wait_for(lambda: machine.owner.get(f"{LOCAL}/instances").json().get("items"))
    told = {said(machine, f"{LOCAL}/instances/{v['name']}", "status 0")["contents"][:13] for v in found}
    assert told == {"rank 0 of 2\ns", "rank 1 of 2\ns"}


def test_a_simulated_instance_tells_its_life(fresh: Served) -> None:
    """A client that reads the port would fail, or take silence for trouble."""
    insert(fresh, "v1", metadata=scripts("exit 1"))
    fresh.advance("5m")
    where = f"{VMS}/v1"
    booted = port(fresh, where)["contents"]
    host = fresh.owner.get(where).json()["resourceStatus"]["physicalHostTopology"]["host"]
    assert booted.startswith(f"[2027-01-11T09:00:00Z] v1 boots on host {host} of a3 in us-central1-a\n")
    fresh.owner.post(f"{where}/stop")
    fresh.advance("1m")
    assert "v1 is down" in port(fresh, where, start=len(booted))["contents"]
    fresh.submit("all", alternatives=[{"accelerators": "h100:32", "duration": "4h"}])
    insert(fresh, "v2", FLEX)
    assert port(fresh, f"{VMS}/v2")["contents"] == ""
    assert fresh.owner.get(f"{VMS}/v3/serialPort").status_code == 404
