"""`python -m benchmarks [--short] [--json] [NAME…]`: run the benchmarks and print their figures."""

from __future__ import annotations

import argparse

from benchmarks import listing, packing, pieces, planning, simulating, submitting
from benchmarks.measuring import report

ALL = {
    "listing": ("Lists of the Compute door, SQLite", listing.run),
    "packing": ("GPUs placed of a public request mix at 130 % demand, 64 hosts of 8", packing.run),
    "pieces": ("Planning fractions and TPU slices", pieces.run),
    "planning": ("Planning on 512 hosts in 32 blocks", planning.run),
    "simulating": ("Whole requests through the engine, 512 simulated hosts", simulating.run),
    "submitting": ("Durable submits through HTTP, SQLite", submitting.run),
}


def main() -> None:
    """Run those named, or all."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--short", action="store_true", help="smaller sizes, for a quick look")
    parser.add_argument("--json", action="store_true", help="one JSON object a line")
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"of {', '.join(ALL)}")
    asked = parser.parse_args()
    for name in asked.names or ALL:
        title, run = ALL[name]
        report(title, run(short=asked.short), as_json=asked.json)


if __name__ == "__main__":
    main()
