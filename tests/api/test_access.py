"""Who may do what: tokens, roles, projects, and what one may do without a token."""

from __future__ import annotations

import hashlib
import stat
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

from dws.api.auth import Doorkeeper, TokenTable, load_or_create_token, load_tokens
from dws.api.http import create_app
from dws.model.access import Role
from dws.model.errors import InvalidArgument, Unauthenticated
from tests.api.served import REQUESTS, SLICE, Served, open_world, serving

PROGRAM = {"alternatives": [SLICE], "workload": {"command": ["true"]}}


def test_the_token_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    """Another user of the machine could read it; a restart would lock everybody out."""
    token = load_or_create_token(tmp_path)
    assert len(token) > 40
    assert load_or_create_token(tmp_path) == token
    assert stat.S_IMODE((tmp_path / "token").stat().st_mode) == 0o600


@pytest.mark.parametrize(("mode", "text"), [(0o640, "secret"), (0o604, "secret"), (0o600, "  \n")])
def test_a_token_file_that_protects_nothing_is_refused(tmp_path: Path, mode: int, text: str) -> None:
    """A token others can read, or an empty one, would let anyone in."""
    (tmp_path / "token").write_text(text)
    (tmp_path / "token").chmod(mode)
    with pytest.raises(InvalidArgument):
        load_or_create_token(tmp_path)


def further(folder: Path, text: str) -> TokenTable:
    folder.mkdir(exist_ok=True)
    (folder / "tokens.toml").write_text(text)
    return load_tokens(folder)


def digest(token: str) -> str:
    return hashlib.sha256(token.encode()).hexdigest()


def test_further_tokens_have_their_role_and_projects(tmp_path: Path) -> None:
    """A team's token would be worth as much as the operator's."""
    table = further(
        tmp_path,
        f'[[token]]\nname = "ci"\nprojects = ["research"]\nsha256 = "{digest("one")}"\n'
        f'[[token]]\nname = "eye"\nrole = "viewer"\nsha256 = "{digest("two")}"\n',
    )
    ci, eye = table.principal("one"), table.principal("two")
    assert ci is not None
    assert (ci.name, ci.role, ci.projects, ci.may_run_programs) == ("ci", Role.USER, ("research",), True)
    assert eye is not None
    assert eye.role is Role.VIEWER
    own = table.principal(load_or_create_token(tmp_path))
    assert own is not None
    assert own.role is Role.OPERATOR
    assert table.principal("three") is None
    assert table.principal("") is None


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ('[[token]]\nname = "a"\n', "sha256"),
        ('[[token]]\nname = "a"\nsha256 = "00"\n', "64"),
        ('[[token]]\nname = "a"\nsha256 = "zz"\n', "hexadecimal"),
        (f'[[token]]\nname = "a"\nrole = "king"\nsha256 = "{"0" * 64}"\n', "king"),
        (f'[[token]]\nname = "a"\nproject = "x"\nsha256 = "{"0" * 64}"\n', "project"),
        ("[[token]", "tokens.toml"),
    ],
)
def test_a_wrong_entry_is_named(tmp_path: Path, text: str, says: str) -> None:
    """A misspelt limit would be no limit."""
    with pytest.raises(InvalidArgument, match=says):
        further(tmp_path, text)


# --- without a token --------------------------------------------------------------------------


def test_on_this_machine_one_may_look_and_submit_without_a_token(fresh: Served) -> None:
    """A first try would fail for want of a token."""
    answer = fresh.anyone.post(REQUESTS, json={"alternatives": [SLICE], "name": "held"})
    assert answer.status_code == 200
    assert answer.json()["items"][0]["principal"] == "anonymous-local"
    assert fresh.anyone.get(f"{REQUESTS}/held").status_code == 200
    assert fresh.anyone.post("/dws/v1/clock:advance", json={"by": "1s"}).status_code == 200


def test_nobody_runs_a_program_without_a_token(fresh: Served) -> None:
    """Any page or any user of this machine could run anything as the server's user."""
    fresh.submit("mine", alternatives=[{"accelerators": "h100:32", "duration": "4h"}])
    fresh.submit("waits")
    before = fresh.last_seq()
    calls = [
        ("POST", REQUESTS, PROGRAM),
        ("POST", f"{REQUESTS}?validateOnly=true", PROGRAM),
        ("PATCH", f"{REQUESTS}/waits", {"workload": PROGRAM["workload"]}),
        ("POST", "/dws/v1/backup", {"path": "/nonexistent/x"}),
    ]
    for verb, path, body in calls:
        answer = fresh.anyone.request(verb, path, json=body)
        assert answer.status_code == 401, (path, answer.text)
        assert "token" in answer.json()["error"]["message"]
    assert fresh.last_seq() == before
    assert fresh.owner.post(f"{REQUESTS}?validateOnly=true", json=PROGRAM).status_code == 200


def test_behind_a_proxy_nobody_is_local(fresh: Served) -> None:
    """A proxy on this machine would make the whole world local."""
    for header in ("x-forwarded-for", "forwarded"):
        assert fresh.anyone.get("/dws/v1/clock", headers={header: "203.0.113.9"}).status_code == 401


@pytest.fixture
def beyond(tmp_path: Path) -> Iterator[TestClient]:
    """A server that listens everywhere, called from elsewhere."""
    system = open_world(tmp_path)
    app = create_app(system, listen="0.0.0.0", names=["dws.example"])
    with TestClient(app, base_url="http://10.0.0.5:8470", client=("10.0.0.9", 4)) as client:
        client.token = load_or_create_token(system.settings.state_dir)  # type: ignore[attr-defined]
        yield client
    system.close()


def test_beyond_this_machine_everything_needs_a_token(beyond: TestClient) -> None:
    """Anyone on the network could use the fleet."""
    paths = ["/dws/v1/clock", "/metrics", "/dws/v1/openapi.json", "/compute/v1/projects/p/zones", "/nothing"]
    for path in paths:
        assert beyond.get(path).status_code == 401, path
    assert beyond.get("/healthz").status_code == 200
    shown = {"authorization": f"Bearer {beyond.token}"}  # type: ignore[attr-defined]
    assert [beyond.get(path, headers=shown).status_code for path in paths] == [200, 200, 200, 200, 404]


def test_a_server_answers_to_its_names_only(beyond: TestClient) -> None:
    """A page whose name points here could call with the browser's hands."""
    for host, status in [
        ("dws.example", 200),
        ("DWS.example:8470", 200),
        ("10.0.0.7", 200),
        ("evil.example", 421),
    ]:
        assert beyond.get("/healthz", headers={"host": host}).status_code == status, host


def test_from_this_machine_to_a_public_server_is_not_local(tmp_path: Path) -> None:
    """A proxy in front of a server that listens everywhere would open it."""
    keeper = Doorkeeper(TokenTable(), listen="0.0.0.0")
    with pytest.raises(Unauthenticated):
        keeper.principal({}, "127.0.0.1")
    local = Doorkeeper(TokenTable(), listen="127.0.0.1")
    assert local.principal({}, "127.0.0.1").name == "anonymous-local"
    with pytest.raises(Unauthenticated):
        local.principal({}, "10.0.0.9")


# --- roles and projects -----------------------------------------------------------------------


@pytest.fixture
def roles(tmp_path: Path) -> Iterator[Served]:
    state = tmp_path / "state"
    state.mkdir()
    entries = [("user", "research"), ("viewer", "research"), ("operator", "")]
    (state / "tokens.toml").write_text(
        "".join(
            f'[[token]]\nname = "{role}"\nrole = "{role}"\nsha256 = "{digest(role)}"\n'
            + (f'projects = ["{project}"]\n' if project else "")
            for role, project in entries
        )
    )
    with serving(tmp_path) as served:
        yield served


def status(served: Served, role: str, verb: str, path: str, body: Any = None) -> int:
    headers = {"authorization": f"Bearer {role}"}
    return served.anyone.request(verb, path, json=body, headers=headers).status_code


def test_each_role_may_do_its_own(roles: Served) -> None:
    """Viewers could change, users could fail hosts."""
    roles.submit("kept")
    down = {"hosts": ["a3-0001"], "state": "DOWN", "confirm": True}
    fans = {"name": "fans", "hosts": ["a2-0001"], "start": "in 1h", "duration": "1h", "confirm": True}
    nights = {"name": "nights", "every": "day 20:00-21:00 UTC 3 times", "accelerators": "h100:8"}
    series = REQUESTS.replace("requests", "series")
    table = [
        ("GET", f"{REQUESTS}/kept", None, {"viewer": 200, "user": 200, "operator": 200}),
        ("POST", REQUESTS, {"alternatives": [SLICE]}, {"viewer": 403, "user": 200, "operator": 200}),
        ("POST", f"{REQUESTS}/nobody:cancel", None, {"viewer": 403, "user": 404, "operator": 404}),
        ("DELETE", f"{REQUESTS}/nobody", None, {"viewer": 403, "user": 404, "operator": 404}),
        ("POST", "/dws/v1/fleet:changeHosts", down, {"viewer": 403, "user": 403, "operator": 200}),
        ("POST", "/dws/v1/maintenance", fans, {"viewer": 403, "user": 403, "operator": 200}),
        ("DELETE", "/dws/v1/maintenance/fans", None, {"viewer": 403, "user": 403, "operator": 200}),
        ("POST", series, nights, {"viewer": 403, "user": 200, "operator": 409}),
        ("PATCH", f"{series}/nights", {"count": 16}, {"viewer": 403, "user": 200, "operator": 200}),
        ("POST", f"{series}/nights:cancel", None, {"viewer": 403, "user": 200, "operator": 400}),
        ("POST", "/dws/v1/clock:advance", {"by": 0}, {"viewer": 403, "user": 403, "operator": 200}),
    ]
    for verb, path, body, want in table:
        assert {role: status(roles, role, verb, path, body) for role in want} == want, path


def test_a_project_is_closed_to_others(roles: Served) -> None:
    """L05: one team would see or change another's work."""
    other = REQUESTS.replace("research", "other")
    roles.submit("ours")
    roles.owner.post(other, json={"alternatives": [SLICE], "name": "theirs"})
    assert status(roles, "user", "GET", f"{other}/theirs") == 403
    assert status(roles, "user", "POST", other, {"alternatives": [SLICE]}) == 403
    assert status(roles, "user", "GET", "/dws/v1/events?project=other") == 403
    assert status(roles, "user", "GET", "/dws/v1/usage?project=other") == 403
    assert status(roles, "user", "GET", "/compute/v1/projects/other/zones") == 403
    shown = {"authorization": "Bearer user"}
    mine = roles.anyone.get("/dws/v1/projects/-/requests", headers=shown).json()["items"]
    assert [r["name"] for r in mine] == ["ours"]
    events = roles.anyone.get("/dws/v1/events", headers=shown).json()["items"]
    assert {e["project"] for e in events} == {"", "research"}
    usage = roles.anyone.get("/dws/v1/usage", headers=shown).json()["lines"]
    assert {line["project"] for line in usage} <= {"research"}
