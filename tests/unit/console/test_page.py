"""The front page, from the engine's answers to HTML."""

from __future__ import annotations

from html.parser import HTMLParser

from tests.scenarios.world import ANN, OPERATOR, World, f1

from dws.console.routes import front_page
from dws.model.access import Principal, Role


class Reader(HTMLParser):
    """What a person would see: text, and the labels of the squares."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.text: list[str] = []
        self.hosts: dict[str, tuple[str, str]] = {}
        self.tags: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        told = dict(attrs)
        if told.get("role") == "img":
            name, _, what = (told["aria-label"] or "").partition(": ")
            self.hosts[name] = ((told["class"] or "").removeprefix("host").strip(), what)

    def handle_data(self, data: str) -> None:
        self.text.append(data)


def test_each_host_and_each_waiting_request_is_there() -> None:
    """Someone who looks instead of reading could see a free fleet that is full."""
    world = World(f1())
    world.submit("busy", hosts=2, hours=2)
    world.submit("big", hosts=4, hours=1)
    world.hosts("DRAINING", "h100-h3")
    world.hosts("DOWN", "h100-h4")
    page = Reader(front_page(world.engine, OPERATOR))
    assert {name: kind for name, (kind, _) in page.hosts.items()} == {
        "h100-h1": "busy",
        "h100-h2": "busy",
        "h100-h3": "draining",
        "h100-h4": "down",
    }
    assert page.hosts["h100-h1"][1].startswith("busy (p) until Mon 11 Jan 11:00")
    text = " ".join(page.text)
    assert "Waiting (1)" in text and "big" in text and "needs 4 free hosts" in text


def test_what_people_write_is_not_html() -> None:
    """A reason someone typed could run a script in an operator's browser."""
    world = World(f1())
    from dws.engine.commands import ChangeHosts

    evil = "<script>alert(1)</script>"
    world.engine.change_hosts(
        OPERATOR, ChangeHosts(hosts=("h100-h1",), state="DOWN", reason=evil, confirm=True)
    )
    page = front_page(world.engine, OPERATOR)
    assert evil not in page and "script" not in Reader(page).tags
    assert "&lt;script&gt;" in page


def test_a_viewer_of_one_project_sees_only_its_requests() -> None:
    """The page could show one team the requests of another."""
    world = World(f1())
    world.submit("busy", hosts=4, hours=2, project="q")
    world.submit("secret-name", hosts=4, hours=1, project="q")
    world.submit("mine", hosts=4, hours=1)
    page = front_page(world.engine, Principal(name="vic", role=Role.VIEWER, projects=("p",)))
    assert "mine" in page
    assert "secret-name" not in page
    assert ANN.name in page
