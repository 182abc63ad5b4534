"""The page on Google's clients: every block of it, run as a reader would."""

from __future__ import annotations

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.e2e.server import Server

pytestmark = pytest.mark.slow
PAGE = Path(__file__).parents[3] / "docs" / "how-to" / "google-clients.md"
BLOCK = re.compile(r"^```(\w+)(?: title=(\S+))?\n(.*?)^```$", re.MULTILINE | re.DOTALL)
SHOWN_ADDRESS = "http://127.0.0.1:8470"
SKYPILOT = os.environ.get("DWS_TEST_SKYPILOT") or (sys.executable if importlib.util.find_spec("sky") else "")
"""The Python that has SkyPilot; it may be another than the tests' own, since SkyPilot pins much."""
PROVIDERS = os.environ.get("DWS_TEST_TERRAFORM", "") if shutil.which("terraform") else ""
"""A directory with Terraform's provider for Google, as `terraform init -plugin-dir` takes it."""
# A page of many calls of real programs takes longer than others on a busy machine.
pytestmark = pytest.mark.timeout(600)

needs_gcloud = pytest.mark.skipif(shutil.which("gcloud") is None, reason="not run: gcloud not found")
LAUNCH = """
from sky.provision import common
from sky.provision.gcp import instance

config = common.ProvisionConfig(
    provider_config={"project_id": "research", "availability_zone": "us-central1-a"},
    authentication_config={}, docker_config={}, count=2, tags={}, resume_stopped_nodes=False,
    ports_to_open_on_launch=None,
    node_config={
        "machineType": "zones/us-central1-a/machineTypes/a3-highgpu-8g",
        "guestAccelerators": [{"acceleratorType": "zones/us-central1-a/acceleratorTypes/nvidia-h100-80gb", "acceleratorCount": 8}],
        "managed-instance-group": {"run_duration": 3600, "provision_timeout": 60},
    },
)
made = instance.run_instances("us-central1", "c", "c", config)
provider = config.provider_config | {"use_managed_instance_group": True}
print(made.head_instance_id, sorted(made.created_instance_ids))
print(sorted(status.value for status, _ in instance.query_instances("c", "c", provider).values()))
info = instance.get_cluster_info("us-central1", "c", provider)
print(len(info.instances), all(i[0].internal_ip for i in info.instances.values()))
instance.terminate_instances("c", provider)
print(instance.query_instances("c", "c", provider))
"""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    server = start(tmp_path_factory.mktemp("state"))
    yield server
    server.stop()


def start(state: Path) -> Server:
    """A server as the page starts it."""
    options = ("--fleet", "demo", "--clock", "virtual", "--start", "2027-01-11T09:00:00Z")
    return Server(state, *options).start()


def blocks(server: Server, section: str, language: str) -> list[str]:
    """The blocks in a language below a heading of the page, with the address of the test's server."""
    page = PAGE.read_text(encoding="utf-8").replace(SHOWN_ADDRESS, server.address)
    (part,) = [p for p in re.split(r"^#{2,3} ", page, flags=re.MULTILINE) if p.startswith(f"{section}\n")]
    found = [text for kind, _, text in BLOCK.findall(part) if kind == language]
    assert found, f"{section} shows no {language}"
    return found


def settings(server: Server, home: Path) -> dict[str, str]:
    """An environment as the page sets it, with no way to another server and no configuration of the machine."""
    (exports,) = blocks(server, "gcloud", "sh")
    told = dict(line.removeprefix("export ").split("=", 1) for line in exports.splitlines())
    return {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(home),
        "CLOUDSDK_CONFIG": str(home / "gcloud"),
        "CLOUDSDK_CORE_DISABLE_PROMPTS": "true",
        "CLOUDSDK_CORE_DISABLE_USAGE_REPORTING": "true",
        "CLOUDSDK_COMPONENT_MANAGER_DISABLE_UPDATE_CHECK": "true",
        "HTTPS_PROXY": "http://127.0.0.1:9/",
        "NO_PROXY": "127.0.0.1",
    } | told


def follow(command: list[str], environment: dict[str, str], said: str = "") -> str:
    """Run something, and give what it prints."""
    done = subprocess.run(
        command, env=environment, input=said, capture_output=True, text=True, timeout=300, check=False
    )
    assert done.returncode == 0, f"{command}\n{said}\n{done.stdout}\n{done.stderr}"
    return done.stdout


@needs_gcloud
def test_gcloud_asks_for_flex_start_as_the_page_says(server: Server, tmp_path: Path) -> None:
    """The first thing a person with Google's habits types would not work."""
    first, waits = blocks(server, "Flex start", "sh")
    environment = settings(server, tmp_path)
    told = follow(["bash", "-e"], environment, first)
    assert told.count("RUNNING") == 2, told
    told = follow(["bash", "-e"], environment, waits)
    assert "ACCEPTED\tus-central1-a: needs 16 free hosts" in told, told


@needs_gcloud
def test_gcloud_books_the_calendar_as_the_page_says(tmp_path: Path) -> None:
    """Who plans ahead would not have a block, or not see it come and go."""
    own = start(tmp_path / "state")
    advice, booked, aimed, lived, planned, chips = blocks(own, "Calendar", "sh")
    environment = settings(own, tmp_path) | {
        "DWS_ADDRESS": own.address,
        "DWS_STATE_DIR": str(own.state_dir),
    }
    try:
        assert "startTime: '2027-01-12T00:00:00Z'" in follow(["bash", "-e"], environment, advice)
        told = follow(["bash", "-e"], environment, booked)
        assert "my-calendarblock" in told, told
        assert told.splitlines()[-2:] == ["APPROVED\t2027-01-12T08:45:00Z", "CREATING"], told
        follow(["bash", "-e"], environment, aimed)
        told = follow(["bash", "-e"], environment, lived)
        assert "FULFILLED\t2\nREADY\n" in told, told
        assert "SUCCEEDED\n" in told and "RUNNING\t2027-01-26T09:00:00Z\n" in told, told
        assert "alone\tTERMINATED\n" in told, told
        told = follow(["bash", "-e"], environment, planned)
        assert "APPROVED\t2027-02-08T09:00:00Z\tcourse-20270201-1" in told, told
        told = follow(["bash", "-e"], environment, chips)
        assert "APPROVED\t48" in told, told
    finally:
        own.stop()


@needs_gcloud
def test_gcloud_reserves_now_as_the_page_says(server: Server, tmp_path: Path) -> None:
    """Who follows the page would have no machines, or would keep them for good."""
    (shown,) = blocks(server, "Reserve now", "sh")
    environment = settings(server, tmp_path)
    told = follow(["bash", "-e"], environment, shown)
    lab = next(line.split() for line in told.splitlines() if line.startswith("lab ") and "LOCAL" in line)
    assert lab[:5] == ["lab", "0", "1", "us-central1-a", "LOCAL"], told
    assert follow(["gcloud", "compute", "reservations", "list", "--format=value(name)"], environment) == ""


@needs_gcloud
def test_many_instances_are_made_as_the_page_says(server: Server, tmp_path: Path) -> None:
    """Who follows the page would have no cluster, or keep it for good."""
    (shown,), (asked,) = (blocks(server, "Many instances at once", kind) for kind in ("sh", "python"))
    environment = settings(server, tmp_path)
    told = follow(["bash", "-e"], environment, shown).split()
    assert told == ["2", "worker-01", "RUNNING", "worker-02", "RUNNING"], told
    listed = ["gcloud", "compute", "instances", "list", "--filter=name:worker", "--format=value(name)"]
    assert follow(listed, environment) == ""
    score, zone = follow([sys.executable, "-"], environment, asked).split()
    assert (float(score), zone.rpartition("-")[0]) == (1.0, "us-central1")


@needs_gcloud
def test_python_asks_as_the_page_says(server: Server, tmp_path: Path) -> None:
    """Google's libraries would not find the server, or not wait."""
    environment = settings(server, tmp_path)
    follow(["bash", "-e"], environment, f"{template(server)}\n{group('python-group')}")
    library, discovery = blocks(server, "Python", "python")
    told = follow([sys.executable, "-"], environment, library.replace('"trainers"', '"python-group"'))
    assert told.split() == ["python", "SUCCEEDED"], told
    assert "us-east5-a" in follow([sys.executable, "-"], environment, discovery).split()


def group(name: str) -> str:
    """The command that makes a group, unless it was made before."""
    where = f"compute instance-groups managed {{}} {name} --zone=us-central1-a"
    there, make = where.format("describe"), where.format("create")
    return f"gcloud {there} >/dev/null 2>&1 || gcloud {make} --template=trainer --size=0"


def template(server: Server) -> str:
    """The page's command that makes the template, unless it was given before."""
    command = blocks(server, "Flex start", "sh")[0].partition("gcloud compute")[0].strip()
    return f"gcloud compute instance-templates describe trainer >/dev/null 2>&1 || {command}"


@needs_gcloud
@pytest.mark.skipif(not SKYPILOT, reason="not run: SkyPilot not found (DWS_TEST_SKYPILOT names a Python)")
def test_skypilot_brings_a_cluster_up_and_down(server: Server, tmp_path: Path) -> None:
    """SkyPilot's own provisioner, given the page's file, could not use the fleet."""
    (shim,) = blocks(server, "SkyPilot", "python")
    folder = tmp_path / "shim"
    folder.mkdir()
    (folder / "sitecustomize.py").write_text(shim)
    environment = settings(server, tmp_path) | {"PYTHONPATH": str(folder)}
    made, states, info, left = follow([SKYPILOT, "-"], environment, LAUNCH).splitlines()[-4:]
    assert len(made.split()) == 3, made
    assert (states, info, left) == ("['UP', 'UP']", "2 True", "{}")


def test_terraform_s_order_of_calls_works_for_the_block(server: Server) -> None:
    """What the provider does for the page's block would fail: insert, read, cancel what waits, delete, read."""
    hcl2 = pytest.importorskip("hcl2", reason="not run: python-hcl2 not found")
    (block,) = blocks(server, "Terraform", "hcl")
    told = plain(hcl2.loads(block))
    provider = told["provider"][0]["google"]
    wanted = told["resource"][0]["google_compute_resize_request"]["training"]
    base = f"{provider['compute_custom_endpoint']}projects/{provider['project']}"
    zone = f"{base}/zones/{wanted['zone']}"
    bearer = {"authorization": f"Bearer {token(server)}"}
    with httpx2.Client(headers=bearer) as http:
        group = f"{zone}/instanceGroupManagers/{wanted['instance_group_manager']}"
        if http.get(group).status_code == 404:
            make_group(http, base, zone, wanted["instance_group_manager"])
        requests = f"{group}/resizeRequests"
        wish = {
            "name": wanted["name"],
            "resizeBy": wanted["resize_by"],
            "requestedRunDuration": wanted["requested_run_duration"][0],
        }
        done(http, http.post(requests, json=wish))
        one = f"{requests}/{wanted['name']}"
        read = http.get(one).json()
        assert (read["resizeBy"], read["requestedRunDuration"]["seconds"]) == (2, "14400")
        if read["state"] in ("CREATING", "ACCEPTED"):
            done(http, http.post(f"{one}/cancel"))
        done(http, http.delete(one))
        assert http.get(one).status_code == 404


def make_group(http: httpx2.Client, base: str, zone: str, name: str) -> None:
    """The group that the block names, which the reader has from the page's first part."""
    template = {"name": "tf", "properties": {"machineType": "a3-highgpu-8g"}}
    done(http, http.post(f"{base}/global/instanceTemplates", json=template))
    group = {"name": name, "instanceTemplate": "global/instanceTemplates/tf", "targetSize": 0}
    done(http, http.post(f"{zone}/instanceGroupManagers", json=group))


def token(server: Server) -> str:
    """What the page has the provider show."""
    (export,) = blocks(server, "Terraform", "sh")
    told = follow(["bash", "-e"], {**os.environ, "DWS_STATE_DIR": str(server.state_dir)}, f"{export}\nenv")
    return dict(line.split("=", 1) for line in told.splitlines() if "=" in line)["GOOGLE_OAUTH_ACCESS_TOKEN"]


def plain(value: Any) -> Any:
    """What python-hcl2 read, without the quotes and marks it keeps."""
    if isinstance(value, dict):
        return {name.strip('"'): plain(part) for name, part in value.items() if name != "__is_block__"}
    if isinstance(value, list):
        return [plain(part) for part in value]
    return value.strip('"') if isinstance(value, str) else value


def done(http: httpx2.Client, answer: httpx2.Response) -> None:
    """Wait for an operation as the provider does: ask for it until it is done."""
    assert answer.is_success, answer.text
    operation = answer.json()
    while operation["status"] != "DONE":
        operation = http.get(operation["selfLink"]).json()
    assert "error" not in operation


@pytest.mark.skipif(not PROVIDERS, reason="not run: no DWS_TEST_TERRAFORM, a directory with the provider")
def test_terraform_applies_the_block(server: Server, tmp_path: Path) -> None:
    """Terraform itself, with Google's provider, could not make what the page shows."""
    (block,) = blocks(server, "Terraform", "hcl")
    (tmp_path / "main.tf").write_text(block)
    environment = settings(server, tmp_path) | {"GOOGLE_OAUTH_ACCESS_TOKEN": token(server)}
    follow(["bash", "-e"], environment, f"{template(server)}\n{group('trainers')}")
    terraform = ["terraform", f"-chdir={tmp_path}"]
    follow([*terraform, "init", f"-plugin-dir={PROVIDERS}"], environment)
    follow([*terraform, "apply", "-auto-approve", "-no-color"], environment)
    assert "training" in follow([*terraform, "show", "-no-color"], environment)
    follow([*terraform, "destroy", "-auto-approve", "-no-color"], environment)
