"""`dws run`: ask, wait with the line in sight, stream what the program prints, end with its status.

Progress goes to standard error: on a terminal one line that counts down, otherwise a line for each change.
Ctrl-C says what will be given back and does it; a second Ctrl-C leaves the request as it is.
"""

from __future__ import annotations

import shutil
from collections import Counter
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

import click

from dws.cli.ask import ask_options, outlook
from dws.cli.exits import Exit, of_ended
from dws.cli.printing import LogPrinter
from dws.cli.session import Session, with_session
from dws.cli.signals import interrupts
from dws.model.errors import FailedPrecondition

if TYPE_CHECKING:
    from dws.wire.native_v1 import Request, SubmitRequest

SECOND_THOUGHTS_S: Final = 3.0
ENDED: Final = frozenset({"COMPLETED", "CANCELLED", "FAILED", "EXPIRED"})


@click.command(context_settings={"allow_interspersed_args": False})
@with_session
@ask_options
def run(session: Session, ask: Callable[[], SubmitRequest]) -> int:
    """Ask for capacity, wait for it, run a program on every instance and exit with its status.

    What the instances print is streamed, with the rank in front when there are several. Without a
    program the instances are held until their time is over or Ctrl-C gives them back.

    \b
    Example:
      dws run --accelerators h100:16 --for 4h -- python train.py
      dws run --accelerators h100:16 --for 4h --or "a100:16 for 8h in us-central1-b" -- python train.py
    """
    with interrupts():
        requests = session.client.submit_all(ask())
        try:
            ended = follow(session, requests)
        except KeyboardInterrupt:
            return give_back(session, requests)
    return conclude(session, ended)


def follow(session: Session, requests: list[Request]) -> list[Request]:
    """Watch requests until all have ended and give them as they ended."""
    if len(requests) == 1:
        return [_follow_one(session, requests[0])]
    return _follow_array(session, requests)


def _follow_one(session: Session, asked: Request) -> Request:
    name, request = asked.name, asked
    progress = Progress(session)
    for request in session.client.watch(name):
        if request.state in ENDED or (request.grant is not None and request.grant.delivered_at):
            break
        progress.show(*_waiting(session, request))
    progress.close()
    if request.state not in ENDED and request.grant is not None:
        session.say(f"{name}: running on {', '.join(i.host for i in request.grant.instances)}")
    if request.workload is not None and request.grant is not None:
        stream(session, request)
    return session.client.wait(name)


def _waiting(session: Session, request: Request) -> tuple[str, str]:
    """What makes news of a waiting request, and its line."""
    forecast = request.forecast
    if forecast is None:
        text = f"{request.name}: {request.state.lower()}"
        return text, text
    news = f"{request.state} {forecast.place} {forecast.reason.code}"
    return news, outlook(session, request, now=session.look_at_clock())


def stream(session: Session, request: Request) -> None:
    """Print what the instances print until none will print more."""
    several = request.grant is not None and len(request.grant.instances) > 1
    printer = LogPrinter(prefix=several, to_stderr=not session.is_table)
    for rank, text in session.client.follow_all_logs(request.name):
        printer.write(rank, text)
    printer.close()


def _follow_array(session: Session, requests: list[Request]) -> list[Request]:
    """Watch an array with one summary line; output of the elements is left to `dws logs`."""
    array = requests[0].array
    progress = Progress(session)
    for _ in session.client.watch(requests[0].name):
        found = {r.name: r for r in session.client.requests(filter=f'array = "{array}"')}
        latest = [found.get(r.name, r) for r in requests]
        counts = Counter(r.state.lower() for r in latest)
        text = f"{array}: " + ", ".join(f"{n} {state}" for state, n in sorted(counts.items()))
        progress.show(text, text)
        if all(r.state in ENDED for r in latest):
            progress.close()
            return [session.client.get(r.name) for r in latest]
    raise AssertionError("a watch ends with its reader")


class Progress:
    """One rewritten line on a terminal, a line for each change elsewhere."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._last = ""
        self._drawn = False

    def show(self, news: str, text: str) -> None:
        """Show `text`; away from a terminal only when `news` differs from the last."""
        if self._session.is_live:
            width = shutil.get_terminal_size().columns
            click.echo(f"\r\x1b[K{text[: width - 1]}", nl=False, err=True)
            self._drawn = True
        elif news != self._last:
            self._session.say(text)
        self._last = news

    def close(self) -> None:
        """Leave the line."""
        if self._drawn:
            click.echo("", err=True)
            self._drawn = False


def give_back(session: Session, requests: list[Request]) -> int:
    """After Ctrl-C: tell, leave a moment for second thoughts, then cancel or release."""
    what = requests[0].name if len(requests) == 1 else f"{requests[0].array} ({len(requests)} requests)"
    try:
        if session.is_live:
            session.say(f"\n{what}: giving it back; Ctrl-C again within {SECOND_THOUGHTS_S:g} s leaves it")
            session.machine.pause(SECOND_THOUGHTS_S)
        else:
            session.say(f"{what}: giving it back")
        for request in requests:
            stop(session, request.name)
    except KeyboardInterrupt:
        session.say(f"left {what} as it is; 'dws wait' follows it, 'dws cancel' and 'dws release' end it")
        return Exit.INTERRUPTED
    session.say(f"{what}: given back")
    return Exit.INTERRUPTED


def stop(session: Session, name: str) -> None:
    """Cancel what waits, release what runs; what has ended is left."""
    for act in (session.client.cancel, session.client.release):
        try:
            act(name)
        except FailedPrecondition:
            continue
        return


def conclude(session: Session, ended: list[Request]) -> int:
    """Say how it ended and give the status: of an array the first that is not 0."""
    session.emit(ended[0] if len(ended) == 1 else {"items": ended, "nextPageToken": ""}, lambda: "")
    statuses = [
        of_ended(
            end_reason=r.end_reason,
            exit_code=r.exit_code,
            has_program=r.workload is not None and bool(r.workload.command),
        )
        for r in ended
    ]
    if len(ended) == 1:
        session.say(_ending(ended[0]))
    else:
        failed = [r for r, status in zip(ended, statuses, strict=True) if status]
        session.say(f"{ended[0].array}: {len(ended) - len(failed)} of {len(ended)} succeeded")
        for request in failed:
            session.say(f"  {_ending(request)}")
    return next((status for status in statuses if status), 0)


def _ending(request: Request) -> str:
    text = f"{request.name}: {request.state.lower()}"
    if request.end_message:
        text += f", {request.end_message}"
    elif request.end_reason:
        text += f", {request.end_reason.lower().replace('_', ' ')}"
    if request.exit_code and not request.end_message:
        text += f" (status {request.exit_code})"
    return text
