"""Every kind of mistake, at every method it can be made at: refused with the right words, nothing changed."""

from __future__ import annotations

from typing import Any

import pytest

from dws.api.http import all_methods
from dws.api.method import Method
from tests.api.served import REQUESTS, SLICE, Served

METHODS = {m.id: m for m in all_methods() if m.id.startswith("dws.")}
VALUES = {
    "{project}": "research",
    "{name}": "kept",
    "{person}": "ann",
    "{version=v1|beta|alpha}": "v1",
    "{zone}": "us-central1-a",
    "{region}": "us-central1",
    "{machineType}": "a3-highgpu-8g",
    "{acceleratorType}": "nvidia-h100-80gb",
}
ACCELERATORS = {"accelerators": "h100:16"}
BODIES: dict[str, dict[str, Any]] = {
    "dws.requests.submit": {"alternatives": [SLICE]},
    "dws.requests.amend": {"priority": 5},
    "dws.requests.release": {"ranks": [0]},
    "dws.requests.extend": {"by": "1h"},
    "dws.quote": {"alternatives": [SLICE]},
    "dws.reservations.reserve": {"name": "r", "start": "in 1h", "duration": "1h", **ACCELERATORS},
    "dws.reservations.amend": {"count": 2},
    "dws.reservations.cancel": {"force": True},
    "dws.reservations.decline": {"reason": "no"},
    "dws.advise": {"duration": "1h", **ACCELERATORS},
    "dws.series.repeat": {"name": "s", "every": "mon 09:00-11:00 UTC 3 times", **ACCELERATORS},
    "dws.series.amend": {"count": 2},
    "dws.series.leaveOut": {"day": "2027-01-25"},
    "dws.maintenance.plan": {"name": "m", "hosts": ["a3-0001"], "start": "in 1h", "duration": "1h"},
    "dws.fleet.apply": {"toml": ""},
    "dws.fleet.changeHosts": {"hosts": ["a3-0001"], "state": "DOWN"},
    "dws.fleet.defrag": {"wanted": {"accelerators": "h100:16"}},
    "dws.clock.advance": {"by": "1h"},
    "dws.backup": {"path": "/nonexistent/copy.db"},
}
NEEDED = {
    "dws.requests.submit": "alternatives",
    "dws.requests.extend": "by",
    "dws.quote": "alternatives",
    "dws.reservations.reserve": "name",
    "dws.advise": "duration",
    "dws.series.repeat": "every",
    "dws.series.leaveOut": "day",
    "dws.maintenance.plan": "hosts",
    "dws.fleet.apply": "toml",
    "dws.fleet.changeHosts": "hosts",
    "dws.fleet.defrag": "wanted",
    "dws.clock.advance": "by",
    "dws.backup": "path",
}
WITH_BODY = sorted(BODIES)
CHANGING = sorted(m.id for m in METHODS.values() if m.verb in ("POST", "PATCH"))


@pytest.fixture(scope="module", autouse=True)
def kept(served: Served) -> None:
    """A request that every path can name."""
    served.submit("kept")


def path_of(method: Method) -> str:
    """A path at which the method answers."""
    path = method.path
    for name, value in VALUES.items():
        path = path.replace(name, value)
    return path


def send(served: Served, method_id: str, **how: Any) -> Any:
    method = METHODS[method_id]
    return served.owner.request(how.pop("verb", method.verb), path_of(method), **how)


class Unchanged:
    """Nothing happens while the block runs."""

    def __init__(self, served: Served) -> None:
        self.served = served

    def __enter__(self) -> None:
        self.before = self.served.last_seq(), self.served.engine.now()

    def __exit__(self, *_: object) -> None:
        assert (self.served.last_seq(), self.served.engine.now()) == self.before


def refused(answer: Any, status: int, reason: str, field: str | None = None) -> str:
    """The message of a refusal that is as expected."""
    assert answer.status_code == status, answer.text
    error = answer.json()["error"]
    assert (error["reason"], error.get("field"), error["status"]) == (reason, field, status), error
    return error["message"]


def test_every_method_with_a_body_is_tried() -> None:
    """A new method would go untested."""
    assert {m.id for m in METHODS.values() if m.request is not None} == BODIES.keys()


@pytest.mark.parametrize("method_id", WITH_BODY)
def test_an_unknown_field_is_named(served: Served, method_id: str) -> None:
    """A misspelt field would be ignored, and the user get something else than asked for."""
    with Unchanged(served):
        answer = send(served, method_id, json=BODIES[method_id] | {"prioritty": 1})
    assert "prioritty" in refused(answer, 400, "unknownField", "prioritty")


@pytest.mark.parametrize("method_id", WITH_BODY)
def test_a_wrong_type_is_named(served: Served, method_id: str) -> None:
    """A wrong type would be an internal error."""
    field, right = next(iter(BODIES[method_id].items()))
    wrong = [1.5] if isinstance(right, dict) else {"no": 1.5}
    with Unchanged(served):
        answer = send(served, method_id, json=BODIES[method_id] | {field: wrong})
    refused(answer, 400, "wrongType", field)


@pytest.mark.parametrize("method_id", sorted(NEEDED))
def test_a_missing_field_is_named(served: Served, method_id: str) -> None:
    """A call without what it needs would do something with defaults."""
    field = NEEDED[method_id]
    with Unchanged(served):
        body = {k: v for k, v in BODIES[method_id].items() if k != field}
        refused(send(served, method_id, json=body), 400, "missingField", field)
        refused(send(served, method_id), 400, "missingField", "body")


@pytest.mark.parametrize(
    ("field", "said", "body"),
    [
        ("workload.signalBefore", "7200", {"workload": {"command": ["a"], "signalBefore": "2h"}}),
        ("workload.directory", "'here'", {"workload": {"command": ["a"], "directory": "here"}}),
        ("labels", "at most 64", {"labels": {f"k{n}": "v" for n in range(65)}}),
    ],
)
def test_what_cannot_be_meant_is_refused(served: Served, field: str, said: str, body: dict[str, Any]) -> None:
    """A program would never be warned, run somewhere else, or records grow without bound."""
    asked = {"alternatives": [SLICE | {"duration": "1h"}], **body}
    with Unchanged(served):
        answer = send(served, "dws.requests.submit", json=asked)
    assert said in refused(answer, 400, answer.json()["error"]["reason"], field)


@pytest.mark.parametrize("method_id", WITH_BODY)
@pytest.mark.parametrize(
    "text", [b"{", b"[]", b"\xff\xfe", b'{"a":' + b"[" * 20_000, b"{} {}", b"null", b'"x"', b"\xef\xbb\xbf{}"]
)
def test_what_is_no_json_object_is_refused(served: Served, method_id: str, text: bytes) -> None:
    """Broken clients would see an internal error."""
    with Unchanged(served):
        answer = send(served, method_id, content=text, headers={"content-type": "application/json"})
    assert answer.status_code == 400
    assert answer.json()["error"]["reason"] in ("parseError", "wrongType", "unknownField", "missingField")


@pytest.mark.parametrize("method_id", CHANGING)
@pytest.mark.parametrize("kind", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data"])
def test_a_form_cannot_call(served: Served, method_id: str, kind: str) -> None:
    """These types a web page may send anywhere without asking: it could cancel or run something."""
    with Unchanged(served):
        answer = send(served, method_id, content=b"{}", headers={"content-type": kind})
        refused(answer, 415, "unsupportedMediaType", "content-type")
        refused(
            send(served, method_id, headers={"content-type": kind}),
            415,
            "unsupportedMediaType",
            "content-type",
        )


@pytest.mark.parametrize("method_id", WITH_BODY)
def test_a_body_without_a_type_is_refused(served: Served, method_id: str) -> None:
    """As a form: without a type nothing says that it is JSON."""
    with Unchanged(served):
        refused(send(served, method_id, content=b"{}"), 415, "unsupportedMediaType", "content-type")


@pytest.mark.parametrize("method_id", CHANGING)
def test_a_large_body_is_refused(served: Served, method_id: str) -> None:
    """One caller could fill the server's memory."""
    large = b'{"name":"' + b"x" * 1_100_000 + b'"}'

    def in_parts() -> Any:
        yield large[:600_000]
        yield large[600_000:]

    headers = {"content-type": "application/json"}
    with Unchanged(served):
        refused(send(served, method_id, content=large, headers=headers), 413, "requestTooLarge")
        refused(send(served, method_id, content=in_parts(), headers=headers), 413, "requestTooLarge")


@pytest.mark.parametrize("method_id", sorted(METHODS))
def test_another_verb_is_refused_with_those_allowed(served: Served, method_id: str) -> None:
    """A client library would not know what is possible."""
    with Unchanged(served):
        answer = send(served, method_id, verb="PUT")
    assert answer.status_code == 405
    assert METHODS[method_id].verb in answer.headers["allow"].split(", ")


@pytest.mark.parametrize("method_id", sorted(METHODS))
def test_a_wrong_token_is_refused(served: Served, method_id: str) -> None:
    """Someone with a stale token would go on as somebody else."""
    with Unchanged(served):
        answer = send(served, method_id, headers={"authorization": "Bearer wrong"})
        assert answer.status_code == 401
        assert answer.headers["www-authenticate"].startswith("Bearer")
        answer = send(served, method_id, headers={"authorization": f"Basic {served.token}"})
        assert answer.status_code == 401


@pytest.mark.parametrize("method_id", sorted(METHODS))
@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example:8470", ""])
def test_a_strange_host_is_refused(served: Served, method_id: str, host: str) -> None:
    """A page whose name was made to point here (DNS rebinding) could call with the browser's hands."""
    with Unchanged(served):
        answer = send(served, method_id, headers={"host": host})
    assert answer.status_code == 421


@pytest.mark.parametrize("method_id", sorted(METHODS))
@pytest.mark.parametrize("origin", ["https://evil.example", "null", "http://127.0.0.1:1"])
def test_a_page_of_another_site_is_refused(served: Served, method_id: str, origin: str) -> None:
    """Any page a user has open could submit, cancel, drain."""
    with Unchanged(served):
        answer = send(served, method_id, headers={"origin": origin})
    assert answer.status_code == 403


def test_a_page_of_this_server_may_call(served: Served) -> None:
    """The console could not change anything."""
    answer = served.owner.post(
        f"{REQUESTS}?validateOnly=true",
        json={"alternatives": [SLICE]},
        headers={"origin": served.address, "sec-fetch-site": "same-origin"},
    )
    assert answer.status_code == 200
    answer = served.owner.post(REQUESTS, json={}, headers={"sec-fetch-site": "cross-site"})
    refused(answer, 403, "crossOrigin")


WRONG = [
    ({"alternatives": [SLICE | {"duration": "1.5h"}]}, "invalid", "alternatives[0].duration", "4h"),
    ({"alternatives": [SLICE | {"duration": "PT4H"}]}, "invalid", "alternatives[0].duration", "4h"),
    ({"alternatives": [SLICE | {"duration": ""}]}, "invalid", "alternatives[0].duration", "4h"),
    ({"alternatives": [SLICE | {"duration": -1}]}, "invalid", "alternatives[0].duration", "negative"),
    ({"alternatives": [SLICE | {"duration": 0}]}, "invalid", "alternatives[0].duration", "at least 1 s"),
    ({"alternatives": [SLICE | {"duration": 10**30}]}, "invalid", "alternatives[0].duration", "longer"),
    ({"alternatives": [SLICE | {"duration": True}]}, "wrongType", "alternatives[0].duration", "bool"),
    ({"alternatives": [SLICE | {"accelerators": "h100:0"}]}, "invalid", "alternatives[0].count", "at least 1"),
    ({"alternatives": [SLICE | {"accelerators": "h100:x"}]}, "invalid", "alternatives[0].accelerators", "h100:16"),
    ({"alternatives": [SLICE | {"accelerators": "h100:-1"}]}, "invalid", "alternatives[0].accelerators", "h100:16"),
    ({"alternatives": [SLICE, SLICE | {"machine": "a3"}]}, "invalid", "alternatives[1].accelerators", "either"),
    ({"alternatives": [{"duration": "1h"}]}, "invalid", "alternatives[0].accelerators", "either"),
    ({"alternatives": [SLICE | {"coutn": 2}]}, "unknownField", "alternatives[0].coutn", "no such field"),
    ({"alternatives": []}, "invalid", "alternatives", "at least one"),
    ({"alternatives": [SLICE], "name": "Train"}, "invalid", "name", "lower-case"),
    ({"alternatives": [SLICE], "name": "t" * 64}, "invalid", "name", "at most 63"),
    ({"alternatives": [SLICE], "labels": {"Team": "a"}}, "invalid", "labels.Team", "lower-case"),
    ({"alternatives": [SLICE], "labels": {"team": 1}}, "wrongType", "labels[...]", "str"),
    ({"alternatives": [SLICE], "notBefore": "2027-01-12"}, "invalid", "notBefore", "offset"),
    ({"alternatives": [SLICE], "notAfter": "tomorrow"}, "invalid", "notAfter", "RFC 3339"),
    ({"alternatives": [SLICE], "notAfter": "2026-01-01T00:00:00Z"}, "invalid", "notAfter", "past"),
    ({"alternatives": [SLICE], "wait": "soon"}, "invalid", "wait", "4h"),
    ({"alternatives": [SLICE], "onHostLoss": "panic"}, "invalid", "onHostLoss", "requeue"),
    ({"alternatives": [SLICE], "array": 1001}, "invalid", "array", "1000"),
    ({"alternatives": [SLICE], "priority": 10**7}, "invalid", "priority", "1000000"),
    ({"alternatives": [SLICE], "workload": {"signalBefore": "x"}}, "invalid", "workload.signalBefore", "4h"),
]  # fmt: skip


@pytest.mark.parametrize(("body", "reason", "field", "says"), WRONG)
def test_a_submission_that_cannot_be_is_refused(
    served: Served, body: dict[str, Any], reason: str, field: str, says: str
) -> None:
    """A user who mistypes would not be told which field, or what to write instead."""
    with Unchanged(served):
        message = refused(served.owner.post(REQUESTS, json=body), 400, reason, field)
        served.owner.post(f"{REQUESTS}?validateOnly=true", json=body)
    assert says in message


def test_seven_days_and_a_second_is_too_long(served: Served) -> None:
    """C06: what the policy does not allow would enter the queue."""
    with Unchanged(served):
        long = {"alternatives": [SLICE | {"duration": 604_801}]}
        answer = served.owner.post(REQUESTS, json=long)
        assert answer.status_code == 400
        assert answer.json()["error"]["field"].endswith("duration")
        assert "604800" in answer.json()["error"]["message"]
        longest = {"alternatives": [SLICE | {"duration": 604_800}]}
        assert served.owner.post(f"{REQUESTS}?validateOnly=true", json=longest).status_code == 200


def test_a_zone_that_is_not_there_is_refused(served: Served) -> None:
    """A request for a zone nobody has would wait for ever."""
    with Unchanged(served):
        body = {"alternatives": [SLICE | {"locations": ["us-mars1-a"]}]}
        answer = served.owner.post(REQUESTS, json=body)
    assert answer.status_code == 400
    assert "us-mars1-a" in answer.json()["error"]["message"]


def test_a_project_that_is_none_is_refused(served: Served) -> None:
    """A project nobody can name again would own requests."""
    with Unchanged(served):
        for project in ("Research", "a%2Fb", "x" * 64, "%00"):
            answer = served.owner.post(f"/dws/v1/projects/{project}/requests", json={"alternatives": [SLICE]})
            assert answer.status_code == 400, project


@pytest.mark.parametrize(
    ("path", "field"),
    [
        (f"{REQUESTS}?pageSize=0", "pageSize"),
        (f"{REQUESTS}?pageSize=many", "pageSize"),
        (f"{REQUESTS}?pagesize=5", "pagesize"),
        (f"{REQUESTS}?pageSize=5&pageSize=6", "pageSize"),
        (f"{REQUESTS}?state=SLEEPING", "state"),
        (f"{REQUESTS}?pageToken=AAAA", "pageToken"),
        (f"{REQUESTS}?orderBy=colour", "orderBy"),
        (f"{REQUESTS}/kept:logs?limit=1", "limit"),
        ("/dws/v1/events?after=-1", "after"),
        ("/dws/v1/events?name=kept", "project"),
        ("/dws/v1/events:follow?after=x", "after"),
        ("/dws/v1/usage?start=yesterday", "start"),
        ("/dws/v1/usage?start=2027-01-11T00:00:00Z&end=2027-01-10T00:00:00Z", "end"),
        ("/dws/v1/clock?colour=red", "colour"),
    ],
)
def test_a_wrong_query_is_named(served: Served, path: str, field: str) -> None:
    """A parameter that is not understood would be ignored: the answer looks right and is not."""
    answer = served.owner.get(path)
    assert answer.status_code == 400, answer.text
    assert answer.json()["error"]["field"] == field


@pytest.mark.parametrize(
    "path",
    ["/", "/dws", "/dws/v1", "/dws/v2/clock", "/dws/v1/clock/", "//dws/v1/clock", f"{REQUESTS}/kept:dance"
     , "/dws/v1/projects//requests", "/dws/v1/clock:", "/compute/v2/projects/p/zones", "/%ff%fe", "/%0A", f"{REQUESTS}/a%0Ab"],
)  # fmt: skip
def test_nothing_answers_where_nothing_is(served: Served, path: str) -> None:
    """A wrong address would be taken for something else."""
    answer = served.owner.get(path)
    assert answer.status_code in (400, 404), answer.text
    assert "error" in answer.json()


def test_google_paths_get_googles_envelope(served: Served) -> None:
    """Google's clients print nothing useful for another envelope."""
    error = served.owner.get("/compute/v1/projects/p/nothing").json()["error"]
    assert (error["code"], error["status"], error["errors"][0]["domain"]) == (404, "NOT_FOUND", "global")
    error = served.owner.post("/compute/v1/projects/p/zones").json()["error"]
    assert error["code"] == 405
    error = served.owner.get("/compute/v1/projects/p/zones", headers={"host": "evil"}).json()["error"]
    assert error["code"] == 421
