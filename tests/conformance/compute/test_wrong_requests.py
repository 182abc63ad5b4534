"""Wrong requests of every kind, over every method of the Compute door that takes a body, in every version.

Each is refused with the public code, reason and shape of message, and changes nothing: every row of the store
is what it was.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx2
import pytest

pytest.importorskip("googleapiclient", reason="not run: googleapiclient not found")

from dws.api.compute_v1.methods import METHODS
from dws.api.method import Method
from dws.planner.options import PRESETS
from tests.api.served import Served, serving
from tests.conformance.compute import world
from tests.conformance.compute.answers import known
from tests.conformance.compute.schema import document

VERSIONS = ("v1", "beta", "alpha")
TAKE_BODIES = [m for m in METHODS if m.request is not None]
CHANGES = [m for m in METHODS if m.verb != "GET"]
INSERTS = [m for m in METHODS if m.id.endswith(".insert")]
PATCHES = [m for m in METHODS if m.verb == "PATCH"]
BY_ID = {m.id.removeprefix("compute."): m for m in METHODS}


def in_versions(methods: list[Method]) -> Any:
    """Each method in each version that has it."""
    cases = [(m, v) for m in methods for v in VERSIONS if m.id in known(v)]
    return pytest.mark.parametrize(
        ("method", "version"), cases, ids=[f"{m.id.removeprefix('compute.')}-{v}" for m, v in cases]
    )


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    with serving(tmp_path_factory.mktemp("served"), policy=PRESETS["google"]) as server:
        world.furnish(server)
        yield server


@contextmanager
def nothing_changes(served: Served) -> Iterator[None]:
    """Fails when the store holds anything else behind the block than before it."""
    before = world.everything(served)
    yield
    after = world.everything(served)
    assert {name for name in before if before[name] != after[name]} == set()


def send(served: Served, method: Method, version: str, body: Any, **path: str) -> httpx2.Response:
    """Call a method."""
    return served.owner.request(method.verb, world.path_of(method, version, **path), json=body)


def refused(answer: httpx2.Response, code: int, status: str, reason: str) -> str:
    """The message of a refusal, which must be the one expected."""
    error = answer.json().get("error", {})
    assert (answer.status_code, error.get("code"), error.get("status")) == (code, code, status), answer.text
    assert [item["reason"] for item in error["errors"]] == [reason], answer.text
    assert error["errors"][0]["message"] == error["message"]
    return str(error["message"])


def fields_of(method: Method, version: str) -> dict[str, Any]:
    """The fields of a method's body, as Google describes them."""
    return document(version)["schemas"][known(version)[method.id]["request"]["$ref"]]["properties"]


@pytest.mark.parametrize("method", TAKE_BODIES, ids=lambda m: m.id)
def test_the_right_request_is_accepted(served: Served, method: Method) -> None:
    """Every wrong request below would be refused for another reason than the one it is about."""
    version = next(v for v in VERSIONS if method.id in known(v))
    body = world.body_of(served, method)
    answer = send(served, method, version, body | ({"name": "right"} if "name" in body else {}))
    assert answer.status_code == 200, answer.text


@in_versions(TAKE_BODIES)
def test_an_unknown_field_is_refused(served: Served, method: Method, version: str) -> None:
    """A misspelt wish would be passed over in silence."""
    with nothing_changes(served):
        answer = send(served, method, version, world.body_of(served, method) | {"noSuchField": 1})
    message = refused(answer, 400, "INVALID_ARGUMENT", "invalid")
    assert message == 'Invalid JSON payload received. Unknown name "noSuchField": Cannot find field.'


@in_versions(TAKE_BODIES)
def test_a_field_of_another_version_is_unknown(served: Served, method: Method, version: str) -> None:
    """A stable client would come to rely on what is only being tried."""
    others = set().union(*(fields_of(method, v) for v in VERSIONS if method.id in known(v)))
    for field in sorted(others - fields_of(method, version).keys()):
        with nothing_changes(served):
            answer = send(served, method, version, world.body_of(served, method) | {field: {}})
        assert f'Unknown name "{field}"' in refused(answer, 400, "INVALID_ARGUMENT", "invalid")


@in_versions(TAKE_BODIES)
def test_a_field_of_the_wrong_type_is_refused(served: Served, method: Method, version: str) -> None:
    """What is kept could not be read back by a typed client, or would be read as something else."""
    for field, told in fields_of(method, version).items():
        wrong = "word" if told.get("type") in ("array", "object") or "$ref" in told else [[]]
        with nothing_changes(served):
            answer = send(served, method, version, world.body_of(served, method) | {field: wrong})
        message = refused(answer, 400, "INVALID_ARGUMENT", "invalid")
        assert message.startswith(f"Invalid value for field 'resource.{field}': ")


@in_versions(INSERTS + PATCHES)
def test_what_says_nothing_is_refused(served: Served, method: Method, version: str) -> None:
    """A change without a change in it would look as if it had been made."""
    for body in ({}, {"id": "3", "selfLink": "here"}) if method in PATCHES else ({},):
        with nothing_changes(served):
            answer = send(served, method, version, body)
        assert answer.json()["error"]["errors"][0]["reason"] in ("required", "invalid")
        assert answer.status_code == 400, answer.text


@in_versions(TAKE_BODIES)
@pytest.mark.parametrize("body", [[], "text", 3], ids=str)
def test_what_is_no_object_is_refused(served: Served, method: Method, version: str, body: Any) -> None:
    """It would be an internal error, which says nothing."""
    with nothing_changes(served):
        answer = send(served, method, version, body)
    refused(answer, 400, "INVALID_ARGUMENT", "invalid")


@in_versions(INSERTS)
@pytest.mark.parametrize("name", ["Upper", "under_score", "-dash", "dash-", "a" * 64, "", "1st"])
def test_a_bad_name_is_refused(served: Served, method: Method, version: str, name: str) -> None:
    """A name that no URL can carry would be taken."""
    with nothing_changes(served):
        answer = send(served, method, version, world.body_of(served, method) | {"name": name})
    message = refused(answer, 400, "INVALID_ARGUMENT", "invalid")
    assert message.startswith(f"Invalid value for field 'resource.name': '{name}'. Must be a match of regex")


@in_versions(INSERTS)
def test_a_name_that_is_taken_is_refused(served: Served, method: Method, version: str) -> None:
    """The second of two equal names would replace the first, or not be found."""
    with nothing_changes(served):
        answer = send(served, method, version, world.body_of(served, method) | {"name": "there"})
    message = refused(answer, 409, "ALREADY_EXISTS", "alreadyExists")
    assert message.startswith("The resource 'projects/research/")
    assert message.endswith("/there' already exists")


@in_versions(CHANGES)
def test_what_is_not_there_is_not_found(served: Served, method: Method, version: str) -> None:
    """A client tells absent from broken by these words."""
    body = world.body_of(served, method) if method.request is not None else None
    names = [word for word in method.path.replace("{version=v1|beta|alpha}", "").split("/") if "{" in word]
    for name in (each.strip("{}") for each in names if each != "{project}"):
        with nothing_changes(served):
            path = world.path_of(method, version, **{name: "absent"})
            answer = served.owner.request(method.verb, path, json=body, params=query_of(method))
        message = refused(answer, 404, "NOT_FOUND", "notFound")
        assert message.startswith("The resource 'projects/research/"), message
        assert message.endswith("was not found")


def query_of(method: Method) -> dict[str, str]:
    """The query a method cannot do without."""
    return {"size": "1"} if method.id.endswith(".resize") else {}


DAY = 86_400


def running(seconds: int) -> dict[str, Any]:
    """A scheduling of a run of so many seconds."""
    return {"provisioningModel": "FLEX_START", "maxRunDuration": {"seconds": str(seconds)}}


def between(start: str, end: str) -> dict[str, Any]:
    """A block's window."""
    return {"timeWindow": {"startTime": start, "endTime": end}}


@pytest.mark.parametrize(
    ("method", "more", "field"),
    [
        *(
            (f"{where}nstanceGroupManagerResizeRequests.insert", {"requestedRunDuration": told}, field)
            for where in ("i", "regionI")
            for told, field in (
                ({"seconds": "599"}, "requestedRunDuration.seconds"),
                ({"seconds": str(7 * DAY + 1)}, "requestedRunDuration.seconds"),
                ({"seconds": "-1"}, "requestedRunDuration.seconds"),
                ({"seconds": "soon"}, "requestedRunDuration.seconds"),
                ({"seconds": "9" * 20}, "requestedRunDuration.seconds"),
            )
        ),
        ("instances.insert", {"scheduling": running(599)}, "scheduling.maxRunDuration.seconds"),
        ("instances.insert", {"scheduling": running(7 * DAY + 1)}, "scheduling.maxRunDuration.seconds"),
        ("instances.setScheduling", running(7 * DAY + 1), "scheduling.maxRunDuration.seconds"),
        (
            "instances.insert",
            {"scheduling": running(600), "params": {"requestValidForDuration": {"seconds": "7201"}}},
            "params.requestValidForDuration.seconds",
        ),
        *(
            ("futureReservations.insert", between(start, end), f"timeWindow.{field}")
            for start, end, field in (
                ("2027-01-20T09:00:00Z", "2027-01-20T09:00:00Z", "endTime"),
                ("2027-01-20T09:00:00Z", "2027-01-19T09:00:00Z", "endTime"),
                ("2027-01-20T09:00:00Z", "2027-01-20T10:00:00Z", "endTime"),
                ("2027-01-20T09:00:00Z", "2027-06-20T09:00:00Z", "endTime"),
                ("2027-01-10T09:00:00Z", "2027-01-20T09:00:00Z", "startTime"),
                ("2027-01-11T10:00:00Z", "2027-01-20T09:00:00Z", "startTime"),
                ("2027-12-11T10:00:00Z", "2027-12-20T09:00:00Z", "startTime"),
                ("tomorrow", "2027-01-20T09:00:00Z", "startTime"),
                ("2027-01-20T09:00:00", "2027-01-22T09:00:00Z", "startTime"),
            )
        ),
    ],
)
def test_a_time_that_cannot_be_is_refused(
    served: Served, method: str, more: dict[str, Any], field: str
) -> None:
    """A typing error would hold machines for years, or start what can never run its time."""
    with nothing_changes(served):
        asked = BY_ID[method]
        answer = send(served, asked, "v1", world.body_of(served, asked) | more)
    message = refused(answer, 400, "INVALID_ARGUMENT", "invalid")
    assert message.startswith(f"Invalid value for field 'resource.{field}': "), message
    assert answer.json()["error"]["errors"][0]["location"] == f"resource.{field}"


@pytest.mark.parametrize(
    ("method", "query", "more"),
    [
        ("instanceGroupManagers.insert", {}, {"instanceTemplate": "global/instanceTemplates/absent"}),
        ("regionInstanceGroupManagers.insert", {}, {"versions": [{"instanceTemplate": "absent"}]}),
        ("instances.insert", {"sourceInstanceTemplate": "global/instanceTemplates/absent"}, {}),
    ],
)
def test_a_template_that_is_not_there_is_named(
    served: Served, method: str, query: dict[str, str], more: dict[str, Any]
) -> None:
    """A user who mistypes its name would hear of everything but it."""
    asked = BY_ID[method]
    body = world.body_of(served, asked) | more
    if "versions" in more:
        del body["instanceTemplate"]
    with nothing_changes(served):
        answer = served.owner.post(world.path_of(asked), params=query, json=body)
    message = refused(answer, 404, "NOT_FOUND", "notFound")
    assert message == "The resource 'projects/research/global/instanceTemplates/absent' was not found"


WAITING = {"instanceGroupManager": "there"}


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "reason"),
    [
        ("instances.setScheduling", {"instance": "there"}, None, "FAILED_PRECONDITION", "resourceNotReady"),
        ("instances.setMachineType", {"instance": "there"}, None, "FAILED_PRECONDITION", "resourceNotReady"),
        *(
            (f"{groups}.{verb}", WAITING, body, "FAILED_PRECONDITION", "resourceNotReady")
            for groups in ("instanceGroupManagers", "regionInstanceGroupManagers")
            for verb, body in (("resize", {}), ("createInstances", None))
        ),
        *(
            (f"{where}nstanceGroupManagerResizeRequests.delete", {}, {}, "INVALID_ARGUMENT", reason)
            for where in ("i", "regionI")
            for reason in ("resourceInUseByAnotherResource",)
        ),
        (
            "instanceTemplates.delete",
            {},
            {},
            "INVALID_ARGUMENT",
            "resourceInUseByAnotherResource",
        ),
    ],
)
def test_what_is_in_the_wrong_state_is_refused(
    served: Served, method: str, path: dict[str, str], body: Any, status: str, reason: str
) -> None:
    """It would be done to what cannot bear it; or half of it."""
    asked = BY_ID[method]
    told = world.body_of(served, asked) if body is None else None
    with nothing_changes(served):
        answer = served.owner.request(
            asked.verb, world.path_of(asked, **path), json=told, params=query_of(asked)
        )
    refused(answer, 400, status, reason)


@pytest.mark.parametrize("verb", ["setLabels", "setMetadata", "setTags"])
def test_an_outdated_fingerprint_is_refused(served: Served, verb: str) -> None:
    """Two people would overwrite each other's changes."""
    asked = BY_ID[f"instances.{verb}"]
    body = world.body_of(served, asked)
    word = "labelFingerprint" if verb == "setLabels" else "fingerprint"
    with nothing_changes(served):
        answer = send(served, asked, "v1", body | {word: "AAAAAAAAAAA="})
    refused(answer, 412, "FAILED_PRECONDITION", "conditionNotMet")
