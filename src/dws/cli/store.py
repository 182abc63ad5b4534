"""The store as a file: `dws backup` of a running server, `dws restore` and `dws migrate` of a stopped one."""

from __future__ import annotations

from pathlib import Path

import click

from dws.cli.session import Session, with_output, with_session

db_option = click.option("--db", default="", metavar="URL", help="Store. [default: the state directory's]")
state_dir_option = click.option(
    "--state-dir", default=None, metavar="DIR", type=click.Path(path_type=Path), help="State directory."
)


def store_url(db: str, state_dir: Path | None) -> str:
    """The URL of the store a server with these options would open."""
    from dws.bootstrap import Settings

    return Settings(db=db, state_dir=state_dir).db_url if state_dir else Settings(db=db).db_url


@click.command()
@with_session
@click.argument("path")
def backup(session: Session, path: str) -> None:
    """Copy the store of a running server to PATH on the server's machine, while it works on.

    \b
    Example:
      dws backup dws-monday.db
    """
    full = str(Path(path).absolute())
    session.client.backup(full)
    session.emit({"path": full}, lambda: full)


@click.command()
@with_output
@click.argument("path", type=click.Path(exists=True, dir_okay=False))
@db_option
@state_dir_option
@click.option("--overwrite", is_flag=True, help="Replace the store that is there.")
def restore(session: Session, path: str, db: str, state_dir: Path | None, *, overwrite: bool) -> None:
    """Put a backup in the place of a stopped server's store.

    \b
    Example:
      dws restore dws-monday.db --overwrite
    """
    from dws.bootstrap import make_private
    from dws.store import backup as copies

    url = store_url(db, state_dir)
    make_private(Path(url.removeprefix("sqlite:///")).parent)
    copies.restore(path, url, overwrite=overwrite)
    session.emit({"db": url}, lambda: f"restored to {url}; start the server with 'dws serve'")


@click.command()
@with_output
@db_option
@state_dir_option
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
def migrate(session: Session, db: str, state_dir: Path | None, *, dry_run: bool) -> None:
    """Bring the store of a stopped server to the schema of this version. Make a backup first.

    \b
    Example:
      dws migrate --dry-run
    """
    from dws.store import migrate as schema

    url = store_url(db, state_dir)
    revisions = schema.pending(url) if dry_run else schema.upgrade(url)
    verb = "to run" if dry_run else "run"
    session.emit(
        {"db": url, "revisions": revisions, "applied": not dry_run},
        lambda: f"{verb}: {', '.join(revisions)}" if revisions else "up to date",
    )
