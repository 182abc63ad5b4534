"""Images: what instances are started from elsewhere. Here instances have no disks, so every image is there.

Clients look an image or a family up before they make a template, in projects of the public service
(`debian-cloud`). Any legal name answers, in any project, with a READY image that is always the same.
"""

from __future__ import annotations

import re
from typing import Any, Final

from dws.api.compute_v1.lists import ListQuery
from dws.api.compute_v1.names import ROOT, Scope, check_resource_name, fingerprint, scope_of, stable_id
from dws.api.method import Call, Method, NoQuery, Query
from dws.model.errors import InvalidArgument

MADE: Final = "20240101"
_OF_A_FAMILY: Final = re.compile(r"(.+)-v\d{8}")
_FEATURES: Final = ("UEFI_COMPATIBLE", "VIRTIO_SCSI_MULTIQUEUE", "GVNIC")


def get(call: Call[None, NoQuery]) -> dict[str, Any]:
    """An image."""
    return image(scope_of(call), _legal(call, "image", "images"))


def get_from_family(call: Call[None, NoQuery]) -> dict[str, Any]:
    """The newest image of a family."""
    return image(scope_of(call), f"{_legal(call, 'family', 'images/family')[:53]}-v{MADE}")


def get_view(call: Call[None, NoQuery]) -> dict[str, Any]:
    """The image a family has in a zone."""
    family = _legal(call, "family", f"zones/{call.path['zone']}/imageFamilyViews")
    return {"image": image(scope_of(call), f"{family[:53]}-v{MADE}")}


def list_them(call: Call[None, ListQuery]) -> dict[str, Any]:
    """None: names that all exist cannot be listed."""
    scope = scope_of(call)
    return {
        "kind": "compute#imageList",
        "id": f"projects/{scope.project}/global/images",
        "items": [],
        "selfLink": scope.link("global/images"),
    }


def image(scope: Scope, name: str) -> dict[str, Any]:
    """The image of that name; of a family when the name ends as such names do."""
    found: dict[str, Any] = {
        "kind": "compute#image",
        "id": stable_id("image", f"{scope.project}/{name}"),
        "name": name,
        "description": f"{name}: a name only; instances here have no disks",
        "creationTimestamp": "2024-01-01T00:00:00Z",
        "status": "READY",
        "sourceType": "RAW",
        "architecture": "ARM64" if "arm64" in name else "X86_64",
        "diskSizeGb": "10",
        "archiveSizeBytes": "1073741824",
        "guestOsFeatures": [{"type": feature} for feature in _FEATURES],
        "labelFingerprint": fingerprint(1),
        "selfLink": scope.link(f"global/images/{name}"),
    }
    family = _OF_A_FAMILY.fullmatch(name)
    return found | ({"family": family[1]} if family else {})


def _legal(call: Call[Any, Any], word: str, collection: str) -> str:
    """The path's value, if it could be a name. Raises NotFound."""
    name = call.path[word]
    try:
        return check_resource_name(name)
    except InvalidArgument:
        raise scope_of(call).not_found(f"global/{collection}/{name}") from None


def _method(name: str, path: str, summary: str, handler: Any, query: type[Query] = NoQuery) -> Method:
    return Method(
        id=f"compute.{name}",
        verb="GET",
        path=f"{ROOT}/{path}",
        summary=summary,
        query=query,
        lenient=True,
        open_to_all=True,
        handler=handler,
    )


METHODS: Final = (
    _method("images.list", "global/images", "Images: none are listed.", list_them, ListQuery),
    _method("images.get", "global/images/{image}", "An image: every name is one.", get),
    _method(
        "images.getFromFamily",
        "global/images/family/{family}",
        "The newest image of a family.",
        get_from_family,
    ),
    _method(
        "imageFamilyViews.get",
        "zones/{zone}/imageFamilyViews/{family}",
        "The image a family has in a zone.",
        get_view,
    ),
)
