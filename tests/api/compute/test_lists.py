"""Lists of documents: filters of both grammars, orders and pages over what is shown."""

from __future__ import annotations

from typing import Any

import pytest

from dws.api.matching import matcher
from dws.store.memory import MemoryReader
from tests.api.compute.test_resize_requests import ZONE, ask, make_group
from tests.api.served import Served

TEMPLATES = "/compute/v1/projects/research/global/instanceTemplates"
THING = {
    "name": "train-1",
    "resizeBy": 2,
    "count": "12",
    "isStable": False,
    "creationTimestamp": "2027-01-11T09:00:00Z",
    "labels": {"team": "a", "k8s.io/x": "y"},
    "scheduling": {"provisioningModel": "FLEX_START"},
    "disks": [{"type": "PERSISTENT"}, {"type": "SCRATCH"}],
    "tags": ["one", "two"],
}


@pytest.mark.parametrize(
    ("text", "fits"),
    [
        ("", True),
        ("name = train-1", True),
        ("name = train-*", True),
        ('name eq "train.*"', True),
        ('name eq "rain.*"', False),
        ('(name eq ".*(^t).*")(isStable eq false)', True),
        ("isStable = False", True),
        ("isStable != false", False),
        ("resizeBy >= 2 AND count > 9", True),
        ("count < 9", False),
        ("scheduling.provisioningModel = FLEX_START", True),
        ("scheduling.provisioning_model = FLEX_START", True),
        ("labels.team = a", True),
        ("labels.team:*", True),
        ("labels.owner:*", False),
        ("labels.k8s.io/x = y", True),
        ("disks.type = SCRATCH", True),
        ("disks.type != SCRATCH", False),
        ("tags = two", True),
        ('creationTimestamp > "2027-01-11T08:00:00Z"', True),
        ('creationTimestamp > "2027-01-11T11:00:00+01:00"', False),
        ("nothing = 1", False),
        ("nothing > 1", False),
        ("NOT nothing = 1", True),
        ("(labels.team = b) OR (tags = one)", True),
    ],
)
def test_filters_look_into_what_is_shown(text: str, fits: bool) -> None:
    """A filter would give things it was to keep out, or hide those it was to give."""
    assert matcher(text)(THING) is fits


def names(served: Served, **query: Any) -> list[str]:
    """Names over all pages."""
    found: list[str] = []
    token = ""
    while True:
        more = {"pageToken": token} if token else {}
        told = served.owner.get(TEMPLATES, params=query | more).json()
        found += [t["name"] for t in told["items"]]
        token = told.get("nextPageToken", "")
        if not token:
            return found


def test_pages_hold_everything_once(fresh: Served) -> None:
    """A page would repeat or lose what is listed, with a filter or an order, or when others add meanwhile."""
    for name in ("c", "a", "e", "b", "d"):
        properties = {"machineType": "m", "labels": {"vowel": str(name in "ae").lower()}}
        made = fresh.owner.post(TEMPLATES, json={"name": name, "properties": properties})
        assert made.status_code == 200, made.text
    for size in (1, 2, 5, 6):
        assert names(fresh, maxResults=size) == list("abcde")
        assert names(fresh, maxResults=size, orderBy="creationTimestamp desc") == list("dbeac")
        assert names(fresh, maxResults=size, filter="properties.labels.vowel = true") == ["a", "e"]
    token = fresh.owner.get(TEMPLATES, params={"maxResults": 2}).json()["nextPageToken"]
    fresh.owner.post(TEMPLATES, json={"name": "aa", "properties": {"machineType": "m"}})
    rest = fresh.owner.get(TEMPLATES, params={"pageToken": token}).json()
    assert [t["name"] for t in rest["items"]] == list("cde")
    wrong = fresh.owner.get(TEMPLATES, params={"pageToken": token, "filter": "name = a"})
    assert wrong.status_code == 400
    everywhere = TEMPLATES.replace("global", "aggregated")
    first = fresh.owner.get(everywhere, params={"maxResults": 4}).json()
    rest = fresh.owner.get(everywhere, params={"pageToken": first["nextPageToken"]}).json()
    told = [t["name"] for page in (first, rest) for t in page["items"]["global"]["instanceTemplates"]]
    assert told == ["a", "aa", "b", "c", "d", "e"]


def test_a_page_reads_what_its_things_stand_for_once(fresh: Served, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page of instances asked for together would take minutes: each would read all of them."""
    group = make_group(fresh)
    assert ask(fresh, group, resizeBy=4).status_code == 200
    fresh.advance("10m")
    read: list[int] = []
    whole = MemoryReader.request

    def counted(reader: MemoryReader, request_id: int) -> Any:
        read.append(request_id)
        return whole(reader, request_id)

    monkeypatch.setattr(MemoryReader, "request", counted)
    assert len(fresh.owner.get(f"{ZONE}/instances").json()["items"]) == 4
    assert len(read) == 1
