"""Generated calls, from the document the server gives of itself: whatever is sent, it is never the server's
fault, and what the document promises is what comes."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis", reason="not run: schemathesis is not installed")

from schemathesis.checks import not_a_server_error  # noqa: E402
from schemathesis.specs.openapi.checks import (  # noqa: E402
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from dws.api.http import all_methods  # noqa: E402
from dws.api.method import Method  # noqa: E402
from dws.api.openapi import PREFIX  # noqa: E402
from tests.api.served import Served  # noqa: E402

CALLS = 20
CHECKS = [
    not_a_server_error,
    content_type_conformance,
    response_schema_conformance,
    status_code_conformance,
]
SLOW = "dws.clock.advance"
"""A year of virtual time is more than a generated call waits for."""
METHODS = [m for m in all_methods() if m.path.startswith(PREFIX) and not m.streams and m.id != SLOW]


@pytest.fixture(scope="module")
def schema(served: Served) -> object:
    """The document, as the server gives it."""
    return schemathesis.openapi.from_url(f"{served.address}/dws/v1/openapi.json")


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS, ids=lambda m: m.id)
def test_no_call_is_the_servers_fault(schema: Any, served: Served, method: Method) -> None:
    """Something a user can send would be an internal error, or an answer no client can read."""
    shown = {"authorization": f"Bearer {served.token}"}

    @given(case=schema[method.path][method.verb].as_strategy())
    @settings(max_examples=CALLS, deadline=None, suppress_health_check=list(HealthCheck), database=None)
    def call(case: Any) -> None:
        case.call_and_validate(headers=shown, checks=CHECKS)

    call()
