"""Starts one program: a session of its own, its output into a pipe, nothing of its supervisor's about it.

It dies with its supervisor: a program that nobody looks after would run past its end.
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

_PR_SET_PDEATHSIG = 1
_PR_SET_CHILD_SUBREAPER = 36
_CHANGED_SIGNALS = (
    signal.SIGCHLD,
    signal.SIGHUP,
    signal.SIGINT,
    signal.SIGPIPE,
    signal.SIGTERM,
    signal.SIGXFSZ,
)
CANNOT_RUN, NOT_FOUND, SIGNALLED = 126, 127, 128


class Program(NamedTuple):
    """A started program. `output` is the non-blocking end of a pipe with all it prints."""

    pid: int
    output: int


def adopt_orphans() -> None:
    """Whatever any descendant leaves behind becomes this process's child, whatever session it is in."""
    _prctl(_PR_SET_CHILD_SUBREAPER, 1)


def start(command: Sequence[str], environment: Mapping[str, str], directory: str, umask: int) -> Program:
    """Start it; returns once it really runs. Raises OSError when there is no such program or directory."""
    output, its_output = os.pipe()
    problem, its_problem = os.pipe()
    parent = os.getpid()
    pid = os.fork()
    if pid == 0:
        _become(command, environment, directory, umask, its_output, its_problem, parent)
    os.close(its_output)
    os.close(its_problem)
    with os.fdopen(problem, "rb") as pipe:
        error = pipe.read()  # empty when the program took over, for then the other end is closed
    if error:
        os.waitpid(pid, 0)
        os.close(output)
        number, _, what = error.partition(b" ")
        raise OSError(int(number), os.strerror(int(number)), what.decode())
    os.set_blocking(output, False)
    return Program(pid, output)


def _become(
    command: Sequence[str],
    environment: Mapping[str, str],
    directory: str,
    umask: int,
    output: int,
    problem: int,
    parent: int,
) -> NoReturn:
    what = directory
    try:
        os.setsid()
        _prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
        if os.getppid() != parent:  # it died before we could ask to be told
            os._exit(CANNOT_RUN)
        for number in _CHANGED_SIGNALS:
            signal.signal(number, signal.SIG_DFL)
        signal.set_wakeup_fd(-1)
        signal.pthread_sigmask(signal.SIG_SETMASK, ())
        os.umask(umask)
        os.chdir(directory)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(output, 1)
        os.dup2(output, 2)
        what = command[0]
        os.execvpe(command[0], list(command), dict(environment))
    except OSError as error:
        os.write(problem, f"{error.errno} {what}".encode())
    except BaseException as error:  # this copy of the supervisor must not go on
        os.write(problem, f"22 {what}: {error}".encode())
    finally:
        os._exit(CANNOT_RUN)


def exit_code(status: int) -> int:
    """A wait status as a shell would say it: killed by signal n is 128 + n."""
    code = os.waitstatus_to_exitcode(status)
    return code if code >= 0 else SIGNALLED - code


def _prctl(option: int, value: int) -> None:
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(option, value, 0, 0, 0) != 0:
        number = ctypes.get_errno()
        print(f"prctl({option}): {os.strerror(number)}", file=sys.stderr)  # noqa: T201  into supervisor.log
