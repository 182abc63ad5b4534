"""The walkthrough page is true: a real request passes the files it names, in the order it names them."""

from __future__ import annotations

import ast
import re
import sys
import threading
import time
from pathlib import Path
from types import FrameType

from starlette.testclient import TestClient

import dws
from dws.bootstrap import Settings, open_system
from dws.planner import kernels

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "explanation" / "walkthrough.md"
ROW = re.compile(r"^\| (\d+) \| `(dws/[\w/]+\.py)` \| `(\w+)` \|", re.MULTILINE)
OTHER_PROCESS = {"dws/backends/local/supervisor.py"}


def rows() -> list[tuple[str, str]]:
    return [(file, function) for _, file, function in ROW.findall(PAGE.read_text())]


def told_on_the_way(frame: FrameType | None) -> bool:
    """True within a forecast: an answer told meanwhile asks the planner too, and is not the request's way."""
    while frame is not None:
        if frame.f_code.co_name == "forecast":
            return True
        frame = frame.f_back
    return False


def test_the_page_names_files_and_functions_that_exist() -> None:
    """A newcomer could be sent to a function that is not there any more."""
    named = rows()
    assert len(named) == 12
    assert len({file for file, _ in named[:10]}) == 10, "fewer files than fingers, and two for the way back"
    for file, function in named:
        tree = ast.parse((ROOT / "src" / file).read_text())
        functions = {n.name for n in ast.walk(tree) if isinstance(n, ast.FunctionDef)}
        assert function in functions, f"{file} has no {function}"


def test_a_real_request_takes_this_way(tmp_path: Path) -> None:
    """The page could describe a way that requests no longer take."""
    src = str(Path(dws.__file__).parents[1]) + "/"
    wanted = {(src + file, function) for file, function in rows() if file not in OTHER_PROCESS}
    visited: list[tuple[str, str]] = []

    def watch(frame: FrameType, event: str, argument: object) -> None:
        del argument
        if event == "call":
            place = (frame.f_code.co_filename, frame.f_code.co_name)
            if place in wanted and place not in visited and not told_on_the_way(frame):
                visited.append(place)

    kernels.warm()  # compiling while being watched takes minutes
    system = open_system(Settings(state_dir=tmp_path))
    from dws.api.http import create_app

    threading.setprofile_all_threads(watch) if hasattr(threading, "setprofile_all_threads") else None
    threading.setprofile(watch)
    sys.setprofile(watch)
    try:
        system.start()
        app = create_app(system)
        token = (tmp_path / "token").read_text().strip()
        with TestClient(app, base_url="http://127.0.0.1", client=("127.0.0.1", 50_000)) as http:
            visited.clear()
            body = {
                "name": "walk",
                "alternatives": [{"machine": "local-cpu", "count": 1, "duration": "1m"}],
                "workload": {"command": [sys.executable, "-c", "print('here')"]},
            }
            headers = {"authorization": f"Bearer {token}"}
            answer = http.post("/dws/v1/projects/p/requests", json=body, headers=headers)
            assert answer.status_code == 200, answer.text
            give_up = time.monotonic() + 30
            while time.monotonic() < give_up:
                told = http.get("/dws/v1/projects/p/requests/walk", headers=headers).json()
                if told["state"] == "COMPLETED":
                    break
                time.sleep(0.05)
            assert told["state"] == "COMPLETED", told
    finally:
        sys.setprofile(None)
        threading.setprofile(None)  # type: ignore[arg-type]
        system.close()
    order = [(path.removeprefix(src), function) for path, function in visited]
    assert order == [row for row in rows() if row[0] not in OTHER_PROCESS]
