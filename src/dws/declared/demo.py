"""The demo fleet: small enough to read at a glance, large enough for a queue to form.

    us-central1-a   16 × a3-highgpu-8g in blocks b1 and b2, 16 × e2-medium, a v5e pod of 16x16 chips
    us-central1-b    8 × a3-highgpu-8g in one block, 4 × a2-highgpu-8g
    us-east5-a      a v5p pod of 8 cubes
    us-east5-b      a v6e pod of 16x16 chips

All of it is simulated and comes up at once. It is written as a fleet file, so that it is an example of
one too.
"""

from __future__ import annotations

from typing import Final

from dws.declared import fleetfile
from dws.model.topology import Fleet

DEMO: Final = """\
# The demo fleet: `dws serve --fleet demo`.
currency = "USD"

[prices]               # per accelerator-hour, or per host-hour where a machine has none
h100 = 4.2008
a100 = 1.6137
v5e = 0.60
v5p = 2.10
v6e = 1.35
e2-medium = 0.0335

[[zones]]
name = "us-central1-a"

[[zones]]
name = "us-central1-b"

[[zones]]
name = "us-east5-a"

[[zones]]
name = "us-east5-b"

[[pools]]
name = "a3-a"
zone = "us-central1-a"
machine = "a3-highgpu-8g"
hosts = 16
[[pools.blocks]]
name = "b1"
hosts = 8
[[pools.blocks]]
name = "b2"
hosts = 8

[[pools]]
name = "e2-a"
zone = "us-central1-a"
machine = "e2-medium"
hosts = 16

[[pools]]
name = "a3-b"
zone = "us-central1-b"
machine = "a3-highgpu-8g"
hosts = 8
[[pools.blocks]]
name = "b1"
hosts = 8

[[pools]]
name = "a2-b"
zone = "us-central1-b"
machine = "a2-highgpu-8g"
hosts = 4

[[pools]]
name = "v5e-a"
zone = "us-central1-a"
machine = "ct5lp-hightpu-8t"
topology = "16x16"
shared = true

[[pools]]
name = "v5p-a"
zone = "us-east5-a"
machine = "ct5p-hightpu-4t"
topology = "8x8x8"

[[pools]]
name = "v6e-b"
zone = "us-east5-b"
machine = "ct6e-standard-8t"
topology = "16x16"
shared = true
"""


def demo_fleet() -> Fleet:
    """The fleet of `dws serve --fleet demo`; zone `local` is added by the server."""
    return fleetfile.parse(DEMO, source="demo")
