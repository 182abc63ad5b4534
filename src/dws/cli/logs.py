"""`dws logs`: what a request's programs printed and print."""

from __future__ import annotations

import click

from dws.cli.printing import JsonLogPrinter, LogPrinter
from dws.cli.session import Session, request_argument, with_session
from dws.model.errors import NotFound


@click.command()
@with_session
@request_argument()
@click.option("--rank", type=click.IntRange(min=0), default=None, help="Only this instance.")
@click.option("-f", "--follow", is_flag=True, help="Go on until nothing more will come.")
def logs(session: Session, name: str, rank: int | None, follow: bool) -> None:
    """What the programs of a request print, with the rank in front when there are several instances.

    With -o json or yaml each piece is one line of JSON.

    \b
    Example:
      dws logs train-a --rank 0 --follow
    """
    request = session.client.get(name)
    if request.grant is None and not follow:
        raise NotFound(f"request '{name}' is {request.state}: nothing has run yet; --follow waits for it")
    if follow:
        request = session.client.wait(name, until="started")
    instances = request.grant.instances if request.grant else []
    several = rank is None and len(instances) > 1
    printer = LogPrinter(prefix=several) if session.is_table else JsonLogPrinter()
    if rank is not None and follow:
        for text in session.client.follow_logs(name, rank=rank):
            printer.write(rank, text)
    elif follow:
        for spoke, text in session.client.follow_all_logs(name):
            printer.write(spoke, text)
    else:
        for each in [rank] if rank is not None else [i.rank for i in instances]:
            _print_what_is_there(session, name, each, printer)
    printer.close()


def _print_what_is_there(session: Session, name: str, rank: int, printer: LogPrinter) -> None:
    offset = 0
    while True:
        chunk = session.client.logs(name, rank=rank, offset=offset)
        if not chunk.text:
            return
        printer.write(rank, chunk.text)
        offset = chunk.offset
