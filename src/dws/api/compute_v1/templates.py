"""Instance templates: what instances are made like. Kept as said; used by groups and bulk inserts."""

from __future__ import annotations

from typing import Any, Final

from dws.api.compute_v1 import affinity, documents, operations
from dws.api.compute_v1.documents import Body, Called
from dws.api.compute_v1.forms import OUTPUT_ONLY, Form, anything, required, text
from dws.api.compute_v1.instance_forms import PROPERTIES
from dws.api.compute_v1.names import Scope, below_project, check_resource_name, last, scope_of
from dws.engine.ports import DocumentQuery, Reader
from dws.engine.write import Write
from dws.model.document import Document
from dws.model.errors import InvalidArgument
from dws.wire.timefmt import format_instant

KIND: Final = "compute.instanceTemplate"
FORM: Final = Form(
    {
        "name": text,
        "description": anything,
        "properties": PROPERTIES,
        "sourceInstance": anything,
        "sourceInstanceParams": anything,
    },
    ignored=OUTPUT_ONLY,
)


def insert(call: Called) -> dict[str, Any]:
    """Keep a template."""
    scope, place = scope_of(call), documents.where(call)
    body = FORM.read(call.body)
    name = check_resource_name(body.get("name"))
    if not body.get("properties", {}).get("machineType"):
        raise required("properties.machineType")
    if "reservationAffinity" in body["properties"]:
        affinity.reference_in(body["properties"], "properties.")

    def work(w: Write) -> operations.Change:
        path = f"{place}/instanceTemplates/{name}"
        if w.tx.document_named(KIND, scope.project, place, name) is not None:
            raise scope.exists(path)
        kept = documents.keep(w, KIND, scope.project, place, name, body)
        return operations.Change(type="insert", target=path, target_id=kept.id)

    return operations.run(call, place, work)


def delete(call: Called) -> dict[str, Any]:
    """Remove a template that no group uses."""
    scope, place, name = scope_of(call), documents.where(call), call.path["instanceTemplate"]
    path = f"{place}/instanceTemplates/{name}"

    def work(w: Write) -> operations.Change:
        kept = documents.find(w.tx, call, COLLECTION, name)
        for group in documents.every(w.tx, DocumentQuery(kind=GROUP, project=scope.project)):
            if below_project(group.body["instanceTemplate"], "global/instanceTemplates") == path:
                raise InvalidArgument(
                    f"The instance_template resource 'projects/{scope.project}/{path}' is already being used "
                    f"by 'projects/{scope.project}/{group.scope}/instanceGroupManagers/{group.name}'",
                    reason="resourceInUseByAnotherResource",
                )
        w.tx.drop_document(kept.id)
        return operations.Change(type="delete", target=path, target_id=kept.id)

    return operations.run(call, place, work)


GROUP: Final = "compute.instanceGroupManager"


def shown(scope: Scope, reader: Reader, kept: Document) -> dict[str, Any]:
    """A template as clients see it."""
    del reader
    found = {
        "kind": "compute#instanceTemplate",
        "id": str(kept.id),
        "name": kept.name,
        "description": "",
        "creationTimestamp": format_instant(kept.created_at),
        "selfLink": scope.link(f"{kept.scope}/instanceTemplates/{kept.name}"),
    } | kept.body
    return found | ({"region": scope.link(kept.scope)} if kept.scope != "global" else {})


def get(call: Called) -> dict[str, Any]:
    """One template."""
    with call.engine.reading() as reader:
        kept = documents.find(reader, call, COLLECTION, call.path["instanceTemplate"])
        return shown(scope_of(call), reader, kept)


def look_up(reader: Reader, project: str, reference: str) -> Document | None:
    """The template a reference means, in whichever of its shapes; None when there is none."""
    path = below_project(reference, "global/instanceTemplates")
    place = path.rpartition("/instanceTemplates/")[0] or "global"
    return reader.document_named(KIND, project, place, last(path))


COLLECTION: Final = documents.Collection(
    kind=KIND, name="instanceTemplates", word="instanceTemplate", show=shown
)
SCOPES: Final = (("instanceTemplates", "global"), ("regionInstanceTemplates", "regions/{region}"))
METHODS: Final = (
    *documents.reads(COLLECTION, get, scopes=("global", "regions/{region}")),
    *(
        documents.change(
            f"{title}.{name}", verb, f"{place}/instanceTemplates{tail}", summary, handler, body=request
        )
        for title, place in SCOPES
        for name, verb, tail, summary, request, handler in (
            ("insert", "POST", "", "Keep an instance template.", Body, insert),
            ("delete", "DELETE", "/{instanceTemplate}", "Remove an instance template.", None, delete),
        )
    ),
)
