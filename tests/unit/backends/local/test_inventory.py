"""What this machine is taken to have."""

from __future__ import annotations

import pytest

from dws.backends.local import inventory, nvml
from dws.backends.local.nvml import Device
from dws.model.errors import InvalidArgument
from dws.model.resources import Overheads

OVERHEADS = Overheads(setup_s=60, grace_s=30, teardown_s=10)
FOUND = (
    Device("GPU-a", "nvidia-h100-80gb"),
    Device("GPU-b", "nvidia-l4"),
    Device("GPU-c", "nvidia-h100-80gb"),
)


def test_c09_without_accelerators_there_are_only_cpu_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A laptop without an accelerator could run nothing, or would promise one."""
    monkeypatch.setattr(nvml, "probe", tuple)
    seen = inventory.take("", 3, OVERHEADS)
    (pool,) = seen.pools
    assert (seen.zone.name, pool.name, pool.zone) == ("local", "local-cpu", "local")
    assert pool.shape.accelerators == 0
    assert pool.hosts == ("local-cpu-0", "local-cpu-1", "local-cpu-2")
    assert pool.overheads == OVERHEADS
    assert seen.of("local-cpu", 0) == ()


def test_each_accelerator_is_a_host(monkeypatch: pytest.MonkeyPatch) -> None:
    """One accelerator could not be asked for without taking the whole machine."""
    monkeypatch.setattr(nvml, "probe", lambda: (FOUND[0], FOUND[2]))
    seen = inventory.take("", 8, OVERHEADS)
    pool = seen.pools[0]
    assert (pool.name, pool.shape.name) == ("local-accelerators", "local-1g")
    assert (pool.shape.accelerator, pool.shape.accelerators) == ("nvidia-h100-80gb", 1)
    assert pool.hosts == ("local-0", "local-1")
    assert [d.id for d in seen.of("local-accelerators", 1)] == ["GPU-c"]
    assert not seen.has("local-accelerators", 2)


def test_accelerators_of_two_types_are_two_pools(monkeypatch: pytest.MonkeyPatch) -> None:
    """Someone who asks for one type would get the other."""
    monkeypatch.setattr(nvml, "probe", lambda: FOUND)
    seen = inventory.take("", 8, OVERHEADS)
    assert [(p.name, p.shape.accelerator, p.hosts) for p in seen.pools[:2]] == [
        ("local-accelerators", "nvidia-h100-80gb", ("local-0", "local-2")),
        ("local-accelerators-2", "nvidia-l4", ("local-1",)),
    ]
    assert [d.id for d in seen.of("local-accelerators-2", 0)] == ["GPU-b"]


@pytest.mark.parametrize(
    ("declared", "devices"),
    [
        ("2", [("0", "accelerator"), ("1", "accelerator")]),
        ("h100:2", [("0", "nvidia-h100-80gb"), ("1", "nvidia-h100-80gb")]),
        ("my-chip:1", [("0", "my-chip")]),
        ("0", []),
    ],
)
def test_accelerators_can_be_declared(declared: str, devices: list[tuple[str, str]]) -> None:
    """A machine whose driver cannot be asked could not be used."""
    assert list(inventory.declare(declared)) == devices


def test_declared_accelerators_are_those_found_first() -> None:
    """A declaration of half the machine would point programs at numbers instead of accelerators."""
    assert inventory.declare("2", FOUND)[1] == Device("GPU-b", "nvidia-h100-80gb")
    assert [d.id for d in inventory.declare("5", FOUND)] == ["GPU-a", "GPU-b", "GPU-c", "3", "4"]


@pytest.mark.parametrize("declared", ["many", "h100", "h100:", "-1", "h100:-1", "9999", "h100:2:2"])
def test_a_declaration_that_is_none_is_refused(declared: str) -> None:
    """A typing error would give a machine without accelerators, and no word about it."""
    with pytest.raises(InvalidArgument, match="TYPE:NUMBER such as 'h100:4'") as error:
        inventory.declare(declared)
    assert error.value.field == "accelerators"


@pytest.mark.parametrize(
    ("product", "kind"),
    [
        ("NVIDIA H100 80GB HBM3", "nvidia-h100-80gb"),
        ("NVIDIA H200", "nvidia-h200-141gb"),
        ("NVIDIA GB200", "nvidia-gb200"),
        ("NVIDIA A100-SXM4-80GB", "nvidia-a100-80gb"),
        ("NVIDIA A100-SXM4-40GB", "nvidia-tesla-a100"),
        ("NVIDIA L4", "nvidia-l4"),
        ("NVIDIA L40S", "nvidia-l40s"),
        ("NVIDIA GeForce RTX 4090", "nvidia-geforce-rtx-4090"),
        ("Tesla T4", "nvidia-tesla-t4"),
    ],
)
def test_a_product_has_a_type(product: str, kind: str) -> None:
    """`--accelerators h100:1` would not find the H100 in this machine."""
    assert nvml.type_of(product) == kind


def test_a_machine_without_a_driver_has_no_accelerators(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server would not start where there is nothing from NVIDIA."""

    def no_driver() -> None:
        raise nvml.pynvml.NVMLError(nvml.pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)

    monkeypatch.setattr(nvml.pynvml, "nvmlInit", no_driver)
    assert nvml.probe() == ()
    assert nvml.computing_on("GPU-a") == ()
