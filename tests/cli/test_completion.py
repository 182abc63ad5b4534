"""Completion: scripts for three shells, commands without loading them, names from the server."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable

import click
import httpx2
import pytest
from click.shell_completion import ShellComplete
from click.testing import Result

from dws.cli.main import cli
from dws.wire import native_v1 as wire
from tests.cli.stub import PROJECT, REQUESTS, Stub, a_fleet, a_series, a_window, occurrence, running, waiting

Run = Callable[..., Result]


def completed(stub: Stub, *args: str) -> list[str]:
    """What is offered for the last of `args`."""
    *before, last = args
    shell = ShellComplete(cli, {"obj": stub.machine()}, "dws", "_DWS_COMPLETE")
    return [item.value for item in shell.get_completions(list(before), last)]


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_there_is_a_script_for_each_shell(dws: Run, shell: str) -> None:
    """Completion could not be switched on."""
    done = dws("completion", shell)
    assert done.exit_code == 0
    assert f"_DWS_COMPLETE={shell}_complete" in done.stdout


def test_the_bash_script_is_bash(dws: Run) -> None:
    """Every new shell would greet its user with a syntax error."""
    script = dws("completion", "bash").stdout
    subprocess.run(["bash", "-n"], input=script, text=True, check=True)


def test_commands_and_options_are_completed(stub: Stub) -> None:
    """A user would have to know every name by heart."""
    assert completed(stub, "desc") == ["describe"]
    assert completed(stub, "fleet", "dr") == ["drain"]
    assert "--accelerators" in completed(stub, "run", "--acc")
    assert completed(stub, "list", "-o", "j") == ["json"]


def test_names_of_requests_are_completed(stub: Stub) -> None:
    """A user would copy long names by hand."""
    found = wire.RequestList(items=[waiting(), running(name="train-b"), waiting(name="other")])
    stub.on(f"GET {REQUESTS}", found)
    for verb in ("describe", "logs", "cancel", "extend"):
        assert completed(stub, verb, "train-") == ["train-a", "train-b"]


def test_without_a_server_nothing_is_completed_and_nothing_said(
    stub: Stub, capsys: pytest.CaptureFixture[str]
) -> None:
    """A traceback would land in the line being typed."""
    stub.on(f"GET {REQUESTS}", httpx2.ConnectError("refused"))
    assert completed(stub, "describe", "tr") == []
    assert capsys.readouterr() == ("", "")


def test_completing_a_command_loads_no_command() -> None:
    """Each press of Tab would take as long as loading everything."""
    code = (
        "import sys; from dws.cli.main import cli\n"
        "try: cli.main(prog_name='dws', complete_var='_DWS_COMPLETE')\n"
        "except SystemExit: pass\n"
        "print([m for m in sys.modules if m.startswith('dws.cli.')], file=sys.stderr)"
    )
    environment = os.environ | {
        "_DWS_COMPLETE": "zsh_complete",
        "COMP_WORDS": "dws qu",
        "COMP_CWORD": "1",
    }
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True, env=environment
    )
    assert "queue" in done.stdout
    assert "dws.cli.queue" not in done.stderr


def test_every_argument_that_names_a_request_completes() -> None:
    """One command of many would not complete names."""
    from dws.cli.session import complete_request, complete_reservation

    for name in cli.list_commands(click.Context(cli)):
        command = cli.get_command(click.Context(cli), name)
        assert command is not None
        for parameter in command.params:
            if isinstance(parameter, click.Argument) and parameter.name in ("name", "names"):
                completes = parameter._custom_shell_complete
                new = name == "reserve"  # names what is not there yet
                assert new or completes in (complete_request, complete_reservation), name


def test_series_their_days_windows_and_hosts_are_completed(stub: Stub) -> None:
    """A user would copy names and dates by hand."""
    found = a_series(occurrence("2027-01-25"), occurrence("2027-01-26"))
    stub.on(f"GET {PROJECT}/series", wire.SeriesList(items=[found]))
    stub.on(f"GET {PROJECT}/series/nights", found)
    stub.on("GET /dws/v1/maintenance", wire.MaintenanceList(items=[a_window()]))
    stub.on("GET /dws/v1/fleet", a_fleet())
    for verb in ("describe", "amend", "skip", "cancel"):
        assert completed(stub, "series", verb, "ni") == ["nights"]
    assert completed(stub, "series", "skip", "nights", "") == ["2027-01-25", "2027-01-26"]
    assert completed(stub, "fleet", "maintenance", "cancel", "f") == ["fans"]
    host = a_fleet().pools[0].hosts[0].name
    assert host in completed(stub, "fleet", "drain", host[:3])
    assert host in completed(stub, "fleet", "maintenance", "plan", "fans", host[:3])


def test_topologies_and_slices_are_completed(stub: Stub) -> None:
    """Which slices there are would have to be looked up."""
    assert completed(stub, "submit", "--tpu", "v5e", "--topology", "4") == ["4x4", "4x8"]
    assert completed(stub, "quote", "--tpu", "v5p-128", "--topology", "2") == ["2x2x1", "2x2x2", "2x2x4", "2x4x4"]
    assert completed(stub, "submit", "--machine", "ct6e-standard-4t", "--topology", "8x") == ["8x8", "8x16"]
    assert completed(stub, "submit", "--accelerators", "v5e:2", "--topology", "16") == ["16x16"]
    assert completed(stub, "submit", "--tpu", "v5l") == ["v5litepod-"]
    assert "v5litepod-16" in completed(stub, "submit", "--tpu", "v5litepod-1")
