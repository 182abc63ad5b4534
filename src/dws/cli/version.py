"""`dws version`: which version this command is."""

from __future__ import annotations

from importlib import metadata

import click

from dws.cli.session import Session, with_output


@click.command()
@with_output
def version(session: Session) -> None:
    """The version of this command and of the Python it runs on; asks no server.

    \b
    Example:
      dws version -o json
    """
    import platform

    own = metadata.version("opendws")
    session.emit(
        {"version": own, "python": platform.python_version()},
        lambda: f"dws {own} (Python {platform.python_version()})",
    )
