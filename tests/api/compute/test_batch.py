"""Batches: several calls in one, each answered by itself."""

from __future__ import annotations

from email import message_from_bytes

import httpx2
import pytest

from tests.api.served import Served

PROJECT = "/compute/v1/projects/research"
TEMPLATE = '{"name": "t1", "properties": {"machineType": "m", "description": "für alle"}}'


def part(number: int, request: str, body: str = "") -> str:
    head = f"--xyz\nContent-Type: application/http\nMIME-Version: 1.0\nContent-ID: <b29c5de2+{number}>\n"
    head += f"Content-Transfer-Encoding: binary\n\n{request} HTTP/1.1\nContent-Type: application/json\n"
    return f"{head}MIME-Version: 1.0\nHost: elsewhere\nContent-Length: {len(body)}\n\n{body}\n"


def batch(served: Served, *parts: str, version: str = "v1") -> httpx2.Response:
    return served.owner.post(
        f"/batch/compute/{version}",
        content=("".join(parts) + "--xyz--\n").encode(),
        headers={"content-type": 'multipart/mixed; boundary="xyz"'},
    )


def answers(answer: httpx2.Response) -> list[tuple[str, str, str]]:
    """Of each part: its Content-ID, its status line, its body."""
    assert answer.status_code == 200, answer.text
    head = f"Content-Type: {answer.headers['content-type']}\r\n\r\n".encode()
    found = []
    for each in message_from_bytes(head + answer.content).get_payload():
        assert each.get_content_type() == "application/http"
        text = each.get_payload(decode=True).decode()
        told, _, body = text.partition("\r\n\r\n")
        found.append((each["Content-ID"], told.splitlines()[0], body))
    return found


def test_each_part_of_a_batch_succeeds_or_fails_by_itself(fresh: Served) -> None:
    """`gcloud … delete a b` would fail whole, or report one's answer as the other's."""
    told = answers(
        batch(
            fresh,
            part(1, f"POST {PROJECT}/global/instanceTemplates", TEMPLATE),
            part(2, f"GET {PROJECT}/zones/nowhere?alt=json"),
            part(3, "GET /compute/alpha/projects/research/global/instanceTemplates/t1?fields=name"),
            part(4, f"DELETE {PROJECT}/global/instanceTemplates/t1"),
            version="beta",
        )
    )
    assert [(which, line) for which, line, _ in told] == [
        ("<response-b29c5de2+1>", "HTTP/1.1 200 OK"),
        ("<response-b29c5de2+2>", "HTTP/1.1 404 Not Found"),
        ("<response-b29c5de2+3>", "HTTP/1.1 200 OK"),
        ("<response-b29c5de2+4>", "HTTP/1.1 200 OK"),
    ]
    assert "'projects/research/zones/nowhere' was not found" in told[1][2]
    assert told[2][2].strip() == '{"name":"t1"}'
    assert f"{fresh.address}/compute/v1/" in told[3][2]
    assert fresh.owner.get(f"{PROJECT}/global/instanceTemplates/t1").status_code == 404


@pytest.mark.parametrize(
    ("content", "kind"),
    [
        ("{}", "application/json"),
        ("--xyz--\n", "multipart/mixed; boundary=xyz"),
        (part(1, f"GET {PROJECT}/zones") + "--xyz--", "multipart/mixed"),
        (part(1, "nonsense") + "--xyz--", "multipart/mixed; boundary=xyz"),
        (part(1, "GET /dws/v1/health") + "--xyz--", "multipart/mixed; boundary=xyz"),
        (part(1, "POST /batch/compute/v1") + "--xyz--", "multipart/mixed; boundary=xyz"),
        (part(1, f"GET {PROJECT}/zones") * 1_001 + "--xyz--", "multipart/mixed; boundary=xyz"),
    ],
)
def test_what_is_no_batch_is_refused(served: Served, content: str, kind: str) -> None:
    """A broken batch would be an internal error, or do some of what it says."""
    refused = served.owner.post("/batch/compute/v1", content=content, headers={"content-type": kind})
    error = refused.json()["error"]
    assert (refused.status_code, error["errors"][0]["reason"]) == (400, "badRequest"), refused.text
    assert error["message"].startswith("Failed to parse batch request: ")
    assert served.owner.get("/batch/compute/v1").status_code == 405


def test_a_batch_may_do_what_its_caller_may(fresh: Served) -> None:
    """The token of the outer call would not count for its parts, or a wrong one be let in."""
    wrong = {"content-type": "multipart/mixed; boundary=xyz", "authorization": "Bearer wrong"}
    refused = fresh.anyone.post(
        "/batch/compute/v1", content=part(1, f"GET {PROJECT}/zones") + "--xyz--", headers=wrong
    )
    assert refused.status_code == 401
