"""What only a database on disk must do: survive, refuse strangers and second masters, be copied."""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from dws.engine.ports import RequestQuery, Store
from dws.model.errors import (
    AlreadyExists,
    DoubleBooking,
    FailedPrecondition,
    InvalidArgument,
    Unavailable,
)
from dws.model.request import RequestState
from dws.store import backup, migrate
from dws.store.memory import MemoryStore
from dws.store.sql import SqlStore
from tests.contract.store.conftest import url_of
from tests.contract.store.samples import a_booking, a_full_reservation, a_full_series, a_request, an_event
from tests.contract.store.test_transactions import everything, write_one, write_two

ROOT = Path(__file__).parents[3]
Open = Callable[..., SqlStore]


def child(code: str, *arguments: str) -> subprocess.Popen[str]:
    """Another process, running `code` from the project's root."""
    return subprocess.Popen(
        [sys.executable, "-c", code, *arguments],
        cwd=ROOT,
        text=True,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def answer(process: subprocess.Popen[str]) -> str:
    """What a process that ends by itself said."""
    out, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return out.strip()


# --- survival ---------------------------------------------------------------------------------


def test_everything_is_there_after_a_restart(sql: Open) -> None:
    """A restart would lose what was promised."""
    store = sql()
    with store.begin() as tx:
        write_one(tx)
    with store.begin() as tx:
        write_two(tx)
    with store.read() as reader:
        before = everything(reader)
    store.close()
    with sql().read() as reader:
        assert everything(reader) == before


KILLED = """
import sys
from dws.store.sql import SqlStore
from tests.contract.store.samples import a_booking, a_request, an_event, an_item
store = SqlStore(sys.argv[1])
def step(tx, n):
    tx.put_request(a_request(n)); tx.append([an_event(n)]); tx.schedule([an_item(n)])
    tx.put_booking(a_booking(n, (n,))); tx.bump_ledger_version()
for n in range(1, 4):
    with store.begin() as tx:
        step(tx, n)
with store.begin() as tx:
    for n in range(4, 200):
        step(tx, n)
    tx.flush()
    print("half way", flush=True)
    sys.stdin.read()
"""


def test_a_crash_in_the_middle_of_a_transaction_leaves_all_or_nothing(tmp_path: Path, sql: Open) -> None:
    """A crash would leave a request without its booking, or a booking without its request."""
    process = child(KILLED, url_of(tmp_path / "dws.db"))
    assert process.stdout is not None
    assert process.stdout.readline() == "half way\n"
    process.send_signal(signal.SIGKILL)
    process.communicate(timeout=60)
    store = sql()
    with store.read() as reader:
        assert [r.id for r in reader.requests(RequestQuery())] == [1, 2, 3]
        assert [e.seq for e in reader.events()] == [1, 2, 3]
        assert [b.id for b in reader.open_bookings()] == [1, 2, 3]
        assert [i.subject for i in reader.due_work(1_000, limit=9)] == [1, 2, 3]
        assert reader.ledger_version() == 3
    with store.begin() as tx:
        assert tx.append([an_event(4)])[0].seq == 4


def test_a_commit_is_on_the_disk_when_it_returns(sql: Open) -> None:
    """A power cut would lose what was answered."""
    with sql()._engine.connect() as connection:
        assert connection.exec_driver_sql("PRAGMA synchronous").scalar() == 2
        assert connection.exec_driver_sql("PRAGMA journal_mode").scalar() == "wal"


def test_readers_do_not_wait_for_the_writer_nor_see_half_of_it(sql: Open) -> None:
    """Every list would stand still while a plan is committed."""
    store, seen = sql(), []

    def look() -> None:
        with store.read() as reader:
            seen.append(len(reader.requests(RequestQuery())))

    with store.begin() as tx:
        tx.put_request(a_request(1))
        assert tx.request_named("vision", "run-1") is not None
        thread = threading.Thread(target=look)
        thread.start()
        thread.join(timeout=20)
    assert seen == [0]


def test_a_read_view_stays_at_its_commit(sql: Open) -> None:
    """A page would mix two states of the ledger."""
    store = sql()
    with store.read() as reader:
        assert reader.last_seq() == 0
        with store.begin() as tx:
            tx.append([an_event(1)])
        assert reader.last_seq() == 0
        assert reader.events() == []
    with store.read() as reader:
        assert reader.last_seq() == 1


# --- trouble ----------------------------------------------------------------------------------


def test_a_locked_database_is_unavailable_and_then_works_again(tmp_path: Path, sql: Open) -> None:
    """A tool that looks into the database would make the server fail for good."""
    store = sql(busy_timeout_s=0.02)
    other = sqlite3.connect(tmp_path / "dws.db", isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(Unavailable, match="locked"), store.begin():
        pass
    other.execute("ROLLBACK")
    other.close()
    with store.begin() as tx:
        tx.put_request(a_request(1))


def test_a_read_only_database_is_unavailable_and_keeps_what_it_has(tmp_path: Path, sql: Open) -> None:
    """New work would be accepted that is lost with the next restart."""
    store = sql()
    with store.begin() as tx:
        tx.put_request(a_request(1))
    store.close()
    frozen = SqlStore(f"sqlite:///file:{tmp_path / 'dws.db'}?mode=ro&uri=true")
    try:
        for _ in range(2):
            with pytest.raises(Unavailable, match="readonly"), frozen.begin() as tx:
                tx.put_request(a_request(2))
                tx.append([an_event(2)])
        with frozen.read() as reader:
            assert [r.id for r in reader.requests(RequestQuery())] == [1]
            assert reader.last_seq() == 0
    finally:
        frozen.close()


FULL = """
import resource, signal, sys
from dws.model.errors import Unavailable
from dws.store.sql import SqlStore
from tests.contract.store.samples import a_request, an_event
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = SqlStore(sys.argv[1])
with store.begin() as tx:
    tx.put_request(a_request(1))
unlimited = resource.getrlimit(resource.RLIMIT_FSIZE)
def fill(first, goes_on):
    with store.begin() as tx:
        for n in range(first, first + 600):
            try:
                with tx.savepoint():
                    tx.put_request(a_request(n, labels={"x": "y" * 3_000}))
                    tx.append([an_event(n)])
                    tx.flush()
            except Unavailable:  # as a caller would that thinks only this part failed
                resource.setrlimit(resource.RLIMIT_FSIZE, unlimited)
                if not goes_on:
                    break
for first, goes_on in ((2, True), (10_000, False)):
    resource.setrlimit(resource.RLIMIT_FSIZE, (200_000, unlimited[1]))
    try:
        fill(first, goes_on)
        print("written")
    except Unavailable:
        print("unavailable")
with store.begin() as tx:
    tx.put_request(a_request(5))
    print([r.id for r in tx.requests(__import__("dws.engine.ports").engine.ports.RequestQuery())], tx.last_seq())
"""


def test_a_full_disk_is_unavailable_writes_nothing_and_recovers(tmp_path: Path) -> None:
    """A full disk would leave half a transaction, or answer "accepted" to what is lost."""
    said = answer(child(FULL, url_of(tmp_path / "dws.db")))
    assert said.splitlines() == ["unavailable", "unavailable", "[1, 5] 0"]


def test_a_damaged_database_says_so(tmp_path: Path) -> None:
    """A broken file would look like an empty one."""
    (tmp_path / "dws.db").write_bytes(b"this is no database, but it is long enough to look" * 40)
    with pytest.raises(FailedPrecondition, match="not a database"):
        SqlStore(url_of(tmp_path / "dws.db"))


def test_a_strangers_database_is_left_alone(tmp_path: Path) -> None:
    """Our tables would be put among another program's."""
    path = tmp_path / "dws.db"
    with sqlite3.connect(path) as other:
        other.execute("CREATE TABLE song (title TEXT)")
    other.close()
    before = path.read_bytes()
    for attempt in (SqlStore, migrate.upgrade):
        with pytest.raises(FailedPrecondition, match="not those of OpenDWS"):
            attempt(url_of(path))
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    "url",
    [
        "",
        "nonsense",
        "sqlite://",
        "postgresql://host/db",
        "sqlite:///:memory:",
        "sqlite:///file:x?mode=memory&uri=true",
    ],
)
def test_what_is_no_store_is_refused_with_an_example(url: str) -> None:
    """A typo would end in a stack trace, or in a ledger that is gone at the end."""
    with pytest.raises(InvalidArgument, match="sqlite:////path"):
        SqlStore(url)


def test_a_folder_that_is_not_there_is_unavailable(tmp_path: Path) -> None:
    """A wrong path would end in a stack trace."""
    with pytest.raises(Unavailable, match=r"absent/dws\.db\.lock"):
        SqlStore(url_of(tmp_path / "absent" / "dws.db"))


# --- one master -------------------------------------------------------------------------------

SECOND = """
import os, sys
from dws.model.errors import FailedPrecondition
from dws.store import backup, migrate
from dws.store.sql import SqlStore
for act in (lambda: SqlStore(sys.argv[1]), lambda: migrate.upgrade(sys.argv[1]),
            lambda: backup.restore(sys.argv[2], sys.argv[1], overwrite=True)):
    try:
        act()
        print("let in")
    except FailedPrecondition as error:
        print(error.message)
"""


def test_a_second_process_is_refused_and_told_who_is_there(tmp_path: Path, sql: Open) -> None:
    """Two servers would give one host to two people."""
    store, url = sql(), url_of(tmp_path / "dws.db")
    store.backup(str(tmp_path / "copy.db"))
    refusals = answer(child(SECOND, url, str(tmp_path / "copy.db"))).splitlines()
    assert len(refusals) == 3
    for refusal in refusals:
        assert f"in use by process {os.getpid()};" in refusal
    with pytest.raises(FailedPrecondition, match="in use by process"):
        SqlStore(url)
    store.close()
    store.close()
    assert answer(child(SECOND, url, str(tmp_path / "copy.db"))).startswith("let in")


def test_the_database_and_its_copies_are_their_owners_alone(tmp_path: Path, sql: Open) -> None:
    """Others on the machine could read tokens in environments and commands."""
    before = os.umask(0o022)
    try:
        store = sql()
        with store.begin() as tx:
            write_one(tx)
        store.backup(str(tmp_path / "copy.db"))
        store.close()
        backup.restore(str(tmp_path / "copy.db"), url_of(tmp_path / "new.db"))
        sql()
    finally:
        os.umask(before)
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    assert {"dws.db", "dws.db-wal", "dws.db.lock", "copy.db", "new.db"} <= set(modes)
    assert set(modes.values()) == {0o600}


def test_a_closed_store_refuses_everything(tmp_path: Path, sql: Open) -> None:
    """A thread that is late would write into a database that is another server's by now."""
    store = sql()
    store.close()
    with pytest.raises(Unavailable, match="closed"), store.begin():
        pass
    with pytest.raises(Unavailable, match="closed"), store.read():
        pass
    with pytest.raises(Unavailable, match="closed"):
        store.backup(str(tmp_path / "copy.db"))


# --- backup and restore -----------------------------------------------------------------------


def test_a_backup_taken_while_in_use_is_one_commit(tmp_path: Path, sql: Open) -> None:
    """A backup would hold half of a transaction, or stop the server while it is made."""
    store = sql()
    with store.begin() as tx:
        write_one(tx)
    with store.read() as reader:
        before = everything(reader)
    with store.begin() as tx:
        tx.put_request(a_request(9))
        assert tx.request_named("vision", "run-9") is not None
        thread = threading.Thread(target=store.backup, args=(str(tmp_path / "copy.db"),))
        thread.start()
        thread.join(timeout=20)
        assert not thread.is_alive()
    with store.begin() as tx:
        write_two(tx)
    with sql("copy.db").read() as reader:
        assert everything(reader) == before


def test_a_backup_never_overwrites(tmp_path: Path, sql: Open) -> None:
    """Last week's backup, or any file, would be lost to a typo."""
    store, taken = sql(), tmp_path / "taken"
    taken.write_text("precious")
    for path in (taken, tmp_path, tmp_path / "absent" / "copy.db", tmp_path / "dws.db"):
        with pytest.raises(InvalidArgument):
            store.backup(str(path))
    assert taken.read_text() == "precious"


def test_a_store_in_memory_says_that_it_has_no_backup(tmp_path: Path) -> None:
    """An operator would think there is a copy."""
    with pytest.raises(FailedPrecondition, match="--db sqlite"):
        MemoryStore().backup(str(tmp_path / "copy.db"))
    assert list(tmp_path.iterdir()) == []


def test_restoring_brings_back_what_was(tmp_path: Path, sql: Open) -> None:
    """After a lost disk the backup would be of no use, or a good ledger be overwritten by mistake."""
    store, url, copy = sql(), url_of(tmp_path / "dws.db"), tmp_path / "copy.db"
    with store.begin() as tx:
        write_one(tx)
    with store.read() as reader:
        before = everything(reader)
    store.backup(str(copy))
    with store.begin() as tx:
        write_two(tx)
    store.close()
    with pytest.raises(AlreadyExists, match="--overwrite"):
        backup.restore(str(copy), url)
    kept = sql()
    with kept.read() as reader:
        assert everything(reader) != before
    kept.close()
    backup.restore(str(copy), url, overwrite=True)
    backup.restore(str(copy), url_of(tmp_path / "elsewhere.db"))
    for name in ("dws.db", "elsewhere.db"):
        with sql(name).read() as reader:
            assert everything(reader) == before


@pytest.mark.parametrize("kind", ["absent", "text", "stranger", "cut", "folder"])
def test_what_is_no_sound_backup_is_not_restored(tmp_path: Path, sql: Open, kind: str) -> None:
    """A wrong or damaged file would take the place of the ledger."""
    store, url, path = sql(), url_of(tmp_path / "dws.db"), tmp_path / "backup"
    with store.begin() as tx:
        for n in range(300):
            tx.put_request(a_request(n))
    if kind == "text":
        path.write_text("hello" * 1_000)
    elif kind == "folder":
        path.mkdir()
    elif kind == "stranger":
        sqlite3.connect(path).execute("CREATE TABLE song (title TEXT)").connection.close()
    elif kind == "cut":
        store.backup(str(path))
        os.truncate(path, path.stat().st_size // 2)
    store.close()
    with pytest.raises(InvalidArgument, match="backup"):
        backup.restore(str(path), url, overwrite=True)
    with sql().read() as reader:
        assert reader.count_requests()[RequestState.PENDING] == 300


# --- the database's own refusals --------------------------------------------------------------


def test_the_database_itself_refuses_what_must_never_be(tmp_path: Path, sql: Open) -> None:
    """If planner and code agree on a mistake, two people would be given one host."""
    store = sql()
    with store.begin() as tx:
        tx.put_booking(a_booking(1, (0, 1)))
        tx.put_booking(a_booking(2, (5,)))
        tx.put_booking(a_booking(3, (0,), (10, 20), parent=1))
    raw = sqlite3.connect(tmp_path / "dws.db", isolation_level=None)
    raw.execute("PRAGMA foreign_keys = ON")
    part = 'INSERT INTO booking_part (booking, unit, parent, pool, start, "end") VALUES (?, ?, ?, ?, ?, ?)'
    for row in (
        (2, 1, 0, "h100", 50, 60),
        (2, 0, 0, "h100", 0, 1),
        (3, 1, 1, "h100", 90, 101),
        (3, 5, 1, "h100", 10, 20),
        (2, 7, None, "h100", 0, 1),
        (9, 7, 0, "h100", 0, 1),
        (2, 7, 0, "h100", 5, 5),
    ):
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute(part, row)
    for statement in (
        "UPDATE booking_part SET unit = 1 WHERE booking = 2",
        'UPDATE booking_part SET "end" = 15 WHERE booking = 1',
        "UPDATE booking_part SET start = -1 WHERE booking = 3",
        "DELETE FROM booking_part WHERE booking = 1",
        "UPDATE booking_part SET unit = 2 WHERE booking = 3",
    ):
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute(statement)
    raw.execute(part, (2, 1, 0, "h100", 100, 110))
    raw.close()
    with pytest.raises(DoubleBooking), store.begin() as tx:
        tx.put_booking(a_booking(4, (1,), (105, 106)))


def test_columns_say_what_documents_say(tmp_path: Path, sql: Open) -> None:
    """What a SQL tool shows would be older than the truth."""
    store: Store = sql()
    with store.begin() as tx:
        write_one(tx)
        write_two(tx)
        tx.put_request(a_request(7, labels={"team": "x"}, priority=4))
        tx.put_reservation(a_full_reservation(17))
        tx.put_series(a_full_series(27))
    raw = sqlite3.connect(tmp_path / "dws.db")
    for table, columns in (
        (
            "request",
            "id project name principal state priority array submitted_at promised_start ended_at version",
        ),
        ("reservation", "id project name state pool series created_at ended_at version deleted"),
        ("series", "id project name state ended_at version"),
        ("booking", "id parent pool stage owner_kind owner version"),
    ):
        names = columns.split()
        chosen = ", ".join(names)
        told = ", ".join(f"json_extract(doc, '$.{name}')" for name in names)
        rows = raw.execute(f"SELECT {chosen} FROM {table}").fetchall()
        assert rows
        assert rows == raw.execute(f"SELECT {told} FROM {table}").fetchall()
    for table, span in (("booking", "span"), ("reservation", "window")):
        spans = raw.execute(f'SELECT start, "end" FROM {table}').fetchall()
        told = f"json_extract(doc, '$.{span}.start'), json_extract(doc, '$.{span}.end')"
        assert spans == raw.execute(f"SELECT {told} FROM {table}").fetchall()
    assert raw.execute("SELECT labels FROM request WHERE id = 7").fetchone() == ('{"team":"x"}',)
    raw.close()


def test_what_the_engine_asks_all_day_uses_an_index(tmp_path: Path, sql: Open) -> None:
    """A server with a long history would become slow with age."""
    sql().close()
    raw = sqlite3.connect(tmp_path / "dws.db")
    for question, index in (
        (
            "SELECT doc FROM request WHERE state IN ('PENDING', 'BOOKED') AND deleted = 0 ORDER BY id",
            "request_state",
        ),
        (
            "SELECT doc FROM request WHERE project = 'p' AND name = 'n' AND deleted = 0 ORDER BY id DESC LIMIT 1",
            "request_name",
        ),
        (
            "SELECT doc FROM reservation WHERE state IN ('APPROVED', 'FULFILLED') AND deleted = 0 ORDER BY id",
            "reservation_state",
        ),
        (
            "SELECT doc FROM reservation WHERE project = 'p' AND name = 'n' ORDER BY id DESC LIMIT 1",
            "reservation_name",
        ),
        ("SELECT doc FROM reservation WHERE series = 's' ORDER BY id", "reservation_series"),
        (
            "SELECT doc FROM series WHERE project = 'p' AND name = 'n' ORDER BY id DESC LIMIT 1",
            "series_name",
        ),
        ("SELECT doc FROM series WHERE project = 'p' ORDER BY id", "series_project"),
        ("SELECT id, ended_at FROM series WHERE ended_at > 0 AND ended_at < 9", "series_ended"),
        ("SELECT doc FROM booking WHERE stage IN ('HOLD', 'FIRM', 'LIVE') ORDER BY id", "booking_stage"),
        ("SELECT * FROM work WHERE due_at <= 5 ORDER BY due_at, kind, subject, tag LIMIT 9", "work_due"),
        ("SELECT min(due_at) FROM work", "work_due"),
        ("SELECT max(subject_seq) FROM event WHERE subject_kind = 'REQUEST' AND subject = 1", "event_1"),
        ('SELECT * FROM usage WHERE request = 1 AND start < 9 AND "end" > 1 ORDER BY id', "usage_request"),
        (
            "SELECT * FROM booking_part WHERE parent = 0 AND pool = 'a' AND unit = 1 AND \"end\" > 5 AND start < 9",
            "booking_part_unit",
        ),
        (
            "SELECT count FROM booking_count WHERE pool = 'a' AND cell = 1 AND \"end\" > 5 AND start < 9",
            "booking_count_cell",
        ),
    ):
        plan = " ".join(row[3] for row in raw.execute(f"EXPLAIN QUERY PLAN {question}"))
        assert index in plan, plan
        assert "SCAN" not in plan or question.startswith(("SELECT min", "SELECT * FROM work")), plan
    raw.close()
