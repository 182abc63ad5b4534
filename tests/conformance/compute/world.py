"""A served fleet with one of everything in it, and for every method that takes a body one that it accepts.

What is asked of every method is asked over these tables: a method that lands without its row here fails
`test_wrong_requests`.
"""

from __future__ import annotations

import re
from typing import Any

from dws.api.method import Method
from tests.api.served import Served

PROJECT = "/compute/v1/projects/research"
ZONE, REGION = f"{PROJECT}/zones/us-central1-a", f"{PROJECT}/regions/us-central1"
MACHINE = "a3-highgpu-8g"
PROPERTIES = {"machineType": MACHINE, "scheduling": {"maxRunDuration": {"seconds": "7200"}}}
TEMPLATE = {"name": "new", "properties": PROPERTIES}
GROUP = {"name": "new", "instanceTemplate": "global/instanceTemplates/there", "targetSize": 0}
BLOCK = {
    "name": "new",
    "specificSkuProperties": {"totalCount": "1", "instanceProperties": {"machineType": MACHINE}},
    "timeWindow": {"startTime": "2027-01-20T09:00:00Z", "endTime": "2027-01-22T09:00:00Z"},
    "reservationMode": "CALENDAR",
    "planningStatus": "SUBMITTED",
    "autoDeleteAutoCreatedReservations": True,
    "specificReservationRequired": True,
}
RESERVATION = {
    "name": "new",
    "specificReservation": {"count": "1", "instanceProperties": {"machineType": "e2-medium"}},
}
RESIZE = {"name": "new", "resizeBy": 1, "requestedRunDuration": {"seconds": "3600"}}

PATH = {
    "version": "v1",
    "project": "research",
    "zone": "us-central1-a",
    "region": "us-central1",
}
"""The values of paths that are places; every other is called `there`."""
BODIES: dict[str, dict[str, Any]] = {
    "advice.calendarMode": {
        "futureResourcesSpecs": {
            "spec": {
                "targetResources": {
                    "specificSkuResources": {"machineType": MACHINE, "instanceCount": "1"}
                }
            }
        }
    },
    "advice.capacity": {
        "size": 1,
        "instanceProperties": {"scheduling": {"provisioningModel": "FLEX_START"}},
        "instanceFlexibilityPolicy": {"instanceSelections": {"a": {"machineTypes": [MACHINE]}}},
    },
    "advice.calendarModeExtension": {
        "futureReservation": "projects/research/zones/us-central1-a/futureReservations/there",
        "endTimeNotLaterThan": "2027-01-23T09:00:00Z",
    },
    "instanceTemplates.insert": TEMPLATE,
    "regionInstanceTemplates.insert": TEMPLATE,
    "instanceGroupManagers.insert": GROUP,
    "instanceGroupManagers.patch": {"description": "changed"},
    "instanceGroupManagers.createInstances": {"instances": [{"name": "by-name"}]},
    "instanceGroupManagers.deleteInstances": {"instances": ["zones/us-central1-a/instances/member"]},
    "instanceGroups.listInstances": {"instanceState": "RUNNING"},
    "instanceGroupManagerResizeRequests.insert": RESIZE,
    "regionInstanceGroupManagers.insert": GROUP,
    "regionInstanceGroupManagers.patch": {"description": "changed"},
    "regionInstanceGroupManagers.createInstances": {"instances": [{"name": "by-name-too"}]},
    "regionInstanceGroupManagers.deleteInstances": {
        "instances": ["zones/us-central1-a/instances/member-too"]
    },
    "regionInstanceGroups.listInstances": {"instanceState": "RUNNING"},
    "regionInstanceGroupManagerResizeRequests.insert": RESIZE,
    "futureReservations.insert": BLOCK,
    "futureReservations.update": {"description": "changed"},
    "reservations.insert": RESERVATION,
    "reservations.resize": {"specificSkuCount": "1"},
    "reservations.update": {"description": "changed"},
    "instances.insert": {"name": "new", "machineType": f"zones/us-central1-a/machineTypes/{MACHINE}"},
    "instances.bulkInsert": {
        "count": "1",
        "namePattern": "new-#",
        "instanceProperties": {"machineType": MACHINE},
    },
    "regionInstances.bulkInsert": {
        "count": "1",
        "namePattern": "newer-#",
        "instanceProperties": {"machineType": MACHINE},
    },
    "instances.setLabels": {"labels": {"a": "b"}, "labelFingerprint": "$labelFingerprint"},
    "instances.setMetadata": {"items": [], "fingerprint": "$metadata.fingerprint"},
    "instances.setTags": {"items": ["x"], "fingerprint": "$tags.fingerprint"},
    "instances.setScheduling": {"automaticRestart": False},
    "instances.setMachineType": {"machineType": f"zones/us-central1-a/machineTypes/{MACHINE}"},
}
"""By method, without `compute.`, a body that is accepted of a method called on what `furnish` made."""
ELSEWHERE: dict[str, dict[str, str]] = {
    "instances.setScheduling": {"instance": "stopped"},
    "instances.setMachineType": {"instance": "stopped"},
    "futureReservations.update": {"futureReservation": "draft"},
    "reservations.insert": {"zone": "us-central1-b"},
    "reservations.resize": {"zone": "us-central1-b"},
    "reservations.update": {"zone": "us-central1-b"},
    "reservations.delete": {"zone": "us-central1-b"},
} | {
    f"{groups}.{verb}": {"instanceGroupManager": "sized"}
    for groups in ("instanceGroupManagers", "regionInstanceGroupManagers")
    for verb in ("createInstances", "deleteInstances")
}
"""By method, the values of its path that are not called `there`: an instance that is stopped, a draft, groups
that no resize request waits for."""


def furnish(served: Served) -> None:
    """Make one of everything, called `there`; then let it come up."""
    post(served, f"{PROJECT}/global/instanceTemplates", TEMPLATE | {"name": "there"})
    post(served, f"{REGION}/instanceTemplates", TEMPLATE | {"name": "there"})
    for place, member in ((ZONE, "member"), (REGION, "member-too")):
        group = f"{place}/instanceGroupManagers"
        for name in ("there", "sized"):
            post(served, group, GROUP | {"name": name})
        post(served, f"{group}/sized/createInstances", {"instances": [{"name": member}]})
        wish = {"name": "there", "resizeBy": 40, "requestedRunDuration": {"seconds": "3600"}}
        post(served, f"{group}/there/resizeRequests", wish)
    for name in ("there", "stopped"):
        post(served, f"{ZONE}/instances", BODIES["instances.insert"] | {"name": name})
    post(served, f"{PROJECT}/zones/us-central1-b/reservations", RESERVATION | {"name": "there"})
    post(served, f"{ZONE}/futureReservations", BLOCK | {"name": "there"})
    post(served, f"{ZONE}/futureReservations", BLOCK | {"name": "draft", "planningStatus": "DRAFT"})
    served.advance("5m")
    post(served, f"{ZONE}/instances/stopped/stop")
    served.advance("5m")


def post(served: Served, path: str, body: dict[str, Any] | None = None) -> None:
    """Make something; fails when that is refused."""
    told = served.owner.post(path, json=body)
    assert told.status_code == 200, f"{path}: {told.text}"


def path_of(method: Method, version: str = "v1", **other: str) -> str:
    """Where a method of what `furnish` made is; `other` are values of the path to be others."""
    elsewhere = ELSEWHERE.get(method.id.removeprefix("compute."), {})
    values = PATH | {"version": version} | elsewhere | other
    return re.sub(r"\{(\w+)[^}]*\}", lambda found: values.get(found[1], "there"), method.path)


def body_of(served: Served, method: Method) -> dict[str, Any]:
    """The body of a method that it accepts, with the fingerprints of now."""
    instance = served.owner.get(f"{ZONE}/instances/there").json()
    body = {}
    for name, value in BODIES[method.id.removeprefix("compute.")].items():
        seen: Any = value
        if isinstance(value, str) and value.startswith("$"):
            seen = instance
            for part in value[1:].split("."):
                seen = seen[part]
        body[name] = seen
    return body


def everything(served: Served) -> dict[str, Any]:
    """Every row the store holds, for comparing."""
    tables = served.system.store.tables
    return {
        "requests": dict(tables.requests),
        "reservations": dict(tables.reservations._rows),
        "series": dict(tables.series._rows),
        "documents": dict(tables.documents._rows),
        "bookings": dict(tables.bookings),
        "hosts": dict(tables.hosts),
        "work": dict(tables.agenda._items),
        "replies": dict(tables.replies),
        "usage": list(tables.usage),
        "meta": dict(tables.meta),
        "events": served.last_seq(),
        "version": tables.ledger_version,
    }
