"""What the server says of itself: the OpenAPI document, health, metrics, the access log, how it stops."""

from __future__ import annotations

import json
import socket
import subprocess
import sys
from typing import Any

import msgspec
import pytest
from prometheus_client.parser import text_string_to_metric_families
from starlette.testclient import TestClient

from dws.api.http import all_methods, create_app
from dws.api.method import Method, NoQuery, Registry
from dws.api.openapi import document
from dws.api.server import bind
from dws.model.access import Role
from dws.model.errors import FailedPrecondition
from tests.api.served import REQUESTS, SLICE, Served, open_world

METHODS = list(all_methods())
DOCUMENT = document(all_methods())
READS_BY_POST = (
    "dws.quote",
    "dws.advise",
    "Operations.wait",
    ".listInstances",
    ".listManagedInstances",
    "advice.calendarMode",
    "advice.calendarModeExtension",
    "advice.capacity",
)


@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_every_method_is_documented(method: Method) -> None:
    """A user would find a method that nobody explains, or one that anyone may call by mistake."""
    assert method.summary.endswith(".")
    assert len(method.summary) > 5
    assert method.handler.__doc__ or method.id.startswith("compute.")
    assert method.verb == "GET" or method.role is not Role.VIEWER or method.id.endswith(READS_BY_POST)
    if method.path.startswith("/dws/"):
        told = DOCUMENT["paths"][method.path][method.verb.lower()]
        assert told["operationId"] == method.id
        assert told["summary"] == method.summary
        assert {p["name"] for p in told["parameters"] if p["in"] == "query"} >= {
            f.encode_name for f in msgspec.structs.fields(method.query)
        }
        assert all(p["description"] for p in told["parameters"])


def test_the_document_hangs_together(served: Served) -> None:
    """Generators of clients would stop at a reference to nothing."""
    told = served.anyone.get("/dws/v1/openapi.json").json()
    assert told["openapi"] == "3.1.0"
    assert "/compute/" not in json.dumps(told["paths"])
    references = {part.split('"')[0] for part in json.dumps(told).split('"$ref": "#/components/schemas/')[1:]}
    assert references == told["components"]["schemas"].keys()


def test_two_methods_at_one_place_are_refused() -> None:
    """The second of two methods would never be reached."""

    def method(id: str, path: str) -> Method:
        return Method(id=id, verb="GET", path=path, summary="", handler=lambda call: None, query=NoQuery)

    for first, second in [("/a/{x}", "/a/{x}"), ("/a/{x}/b", "/a/{y}/c"), ("/a:go", "/a:go")]:
        with pytest.raises(ValueError):
            Registry([method("one", first), method("two", second)])
    with pytest.raises(ValueError):
        Registry([method("one", "/a"), method("one", "/b")])


def metrics(served: Served) -> dict[str, float]:
    text = served.anyone.get("/metrics").text
    return {
        sample.name + "".join(f"[{v}]" for _, v in sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def test_metrics_tell_of_requests_waits_promises_plans_and_calls(fresh: Served) -> None:
    """An operator would not see that work waits, that promises break, or who is refused."""
    fresh.submit("holds", alternatives=[{"accelerators": "h100:32", "duration": "2h"}])
    fresh.submit("waits")
    fresh.advance("2h")
    fresh.anyone.get("/dws/v1/nothing")
    found = metrics(fresh)
    assert (found["dws_requests[ACTIVE]"], found["dws_requests[COMPLETED]"]) == (1, 1)
    assert found["dws_requests[PENDING]"] == 0
    assert (found["dws_request_wait_seconds_count"], found["dws_request_wait_seconds_sum"]) == (2, 7200)
    kept = [found[f"dws_promise_error_seconds_bucket[{bound}]"] for bound in ("-60.0", "0.0", "+Inf")]
    assert kept == [0, 1, 1]
    assert found["dws_plan_seconds_count"] > 0
    assert found["dws_events_total[Submitted]"] == 2
    assert found["dws_http_requests_total[200][dws.requests.submit]"] == 2
    assert found["dws_http_requests_total[404][-]"] == 1
    assert found["dws_stuck_work"] == 0
    assert found["dws_last_event"] == fresh.last_seq()
    assert found["dws_domain_time_seconds"] == fresh.engine.now()


def test_health_is_ok_until_work_is_stuck_or_the_store_is_gone(
    fresh: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A server that does nothing any more would be kept in service."""
    assert fresh.anyone.get("/healthz").text == "ok\n"
    health = fresh.engine.health()
    stuck = type(health)(**{n: getattr(health, n) for n in health.__slots__} | {"stuck": 3})
    monkeypatch.setattr(fresh.engine, "health", lambda: stuck)
    assert fresh.anyone.get("/healthz").status_code == 503


def test_trouble_is_told_to_the_log_and_not_to_the_caller(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """A stack trace or a secret would go to whoever asks, and the operator learn nothing."""
    system = open_world(tmp_path)

    def broken(who: object) -> None:
        raise RuntimeError("the secret is 42")

    monkeypatch.setattr(system.engine, "fleet", broken)
    with TestClient(create_app(system), base_url="http://localhost", client=("127.0.0.1", 9)) as client:
        answer = client.get("/dws/v1/fleet")
        assert answer.status_code == 500
        assert "42" not in answer.text
        assert answer.headers["x-request-id"] in answer.json()["error"]["message"]
    logged = capsys.readouterr()
    assert "the secret is 42" in logged.out + logged.err
    system.close()


def test_head_gives_the_headers_alone(served: Served) -> None:
    """Link checkers and load balancers would be refused, or read a body that must not be there."""
    answer = served.owner.head("/dws/v1/clock")
    assert (answer.status_code, answer.content) == (200, b"")
    assert int(answer.headers["content-length"]) > 0
    assert served.owner.head("/dws/v1/nothing").status_code == 404


def test_an_address_in_use_is_told_in_words() -> None:
    """A second server would die with a stack trace."""
    with socket.create_server(("127.0.0.1", 0)) as taken:
        with pytest.raises(FailedPrecondition, match="--port"):
            bind("127.0.0.1", taken.getsockname()[1])
    with pytest.raises(FailedPrecondition):
        bind("203.0.113.1", 0)


def test_many_calls_at_once_are_all_answered(fresh: Served) -> None:
    """Calls beyond the number of threads would be lost."""
    from concurrent.futures import ThreadPoolExecutor

    def submit(n: int) -> int:
        body = {"alternatives": [SLICE], "name": f"r-{n}"}
        return fresh.owner.post(REQUESTS, json=body).status_code

    with ThreadPoolExecutor(32) as pool:
        assert set(pool.map(submit, range(100))) == {200}
    assert len(fresh.owner.get(REQUESTS).json()["items"]) == 100


@pytest.mark.parametrize("as_json", [True, False])
def test_logs_have_no_values_of_variables_in_them(as_json: bool) -> None:
    """A token in a variable would be in the log after the first error."""
    program = (
        "import structlog\n"
        "from dws.telemetry import logging\n"
        f"logging.configure('info', as_json={as_json})\n"
        "def f(headers): return headers['nothing']\n"
        "log = structlog.get_logger()\n"
        "log.debug('too quiet'); log.info('call', status=200)\n"
        "try: f({'authorization': 'se' + 'cret'})\n"
        "except KeyError as error: log.error('trouble', exc_info=error)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    assert "KeyError" in done.stderr
    assert "secret" not in done.stderr
    assert "too quiet" not in done.stderr
    if as_json:
        first, second = (json.loads(line) for line in done.stderr.splitlines())
        assert (first["event"], first["status"], first["level"]) == ("call", 200, "info")
        assert "Traceback" in second["exception"]
