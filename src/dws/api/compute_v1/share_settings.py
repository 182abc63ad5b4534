"""Share settings: which other projects may use a reservation, in both shapes that clients send.

Beta and alpha have a list of projects, v1 only a map; both are understood everywhere, and answered as far
as the version knows them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from dws.api.compute_v1.forms import Form, invalid, many, named, required, text, words
from dws.api.compute_v1.names import last
from dws.model.errors import InvalidArgument
from dws.model.names import check_project
from dws.model.reservation import Share

SHARES_MAX: Final = 100
_FOLDERS: Final = "DIRECT_PROJECTS_UNDER_SPECIFIC_FOLDERS"
FORM: Final = Form(
    {
        "shareType": words(_FOLDERS, "LOCAL", "ORGANIZATION", "SHARE_TYPE_UNSPECIFIED", "SPECIFIC_PROJECTS"),
        "projects": many(text),
        "projectMap": named(Form({"projectId": text})),
        "folderMap": named(Form({"folderId": text})),
    }
)


def shares(settings: Mapping[str, Any] | None, owner: str, before: Sequence[Share] = ()) -> tuple[Share, ...]:
    """The projects that settings name beside their owner's, by name. Those that `before` has keep their
    limit.

    Raises InvalidArgument for kinds of sharing that need an organisation, and for too many projects.
    """
    settings = settings or {}
    kind = settings.get("shareType", "SHARE_TYPE_UNSPECIFIED")
    named_ones = _projects(settings)
    if kind in ("ORGANIZATION", _FOLDERS) or settings.get("folderMap"):
        why = "This fleet knows no organisation and no folders; share with SPECIFIC_PROJECTS."
        raise invalid("shareSettings.shareType", kind, why)
    if kind == "LOCAL" and named_ones:
        raise invalid("shareSettings.shareType", kind, "It names no projects to share with.")
    if kind == "SPECIFIC_PROJECTS" and not named_ones:
        raise required("shareSettings.projectMap")
    if len(named_ones) > SHARES_MAX:
        why = f"At most {SHARES_MAX} projects may share."
        raise invalid("shareSettings.projectMap", len(named_ones), why)
    limits = {share.project: share.hosts_max for share in before}
    return tuple(Share(project=p, hosts_max=limits.get(p, 0)) for p in named_ones if p != owner)


def _projects(settings: Mapping[str, Any]) -> list[str]:
    """The projects named in either shape, each once."""
    found = {last(project) for project in settings.get("projects", [])}
    for key, project in settings.get("projectMap", {}).items():
        found.add(last(project.get("projectId", key)))
    for project in found:
        try:
            check_project(project)
        except InvalidArgument as error:
            raise invalid("shareSettings.projectMap", project, error.message) from None
    return sorted(found)


def shown(projects: Sequence[str], version: str = "v1") -> dict[str, Any]:
    """The settings of what is shared with these projects, as that version has them."""
    if not projects:
        return {"shareType": "LOCAL"}
    found: dict[str, Any] = {
        "shareType": "SPECIFIC_PROJECTS",
        "projectMap": {project: {"projectId": project} for project in projects},
    }
    return found | ({} if version == "v1" else {"projects": list(projects)})
