"""A gang that computes pi together: every rank sums its share of a series, rank 0 adds the parts up.

It uses nothing but what any distributed program is given (RANK, WORLD_SIZE, MASTER_ADDR, MASTER_PORT), so
`torch.distributed` would find its peers the same way.
"""

from __future__ import annotations

import os
import socket
import struct
import time

TERMS = 2_000_000
PATIENCE_S = 30.0


def share(rank: int, size: int) -> float:
    """This rank's part of the midpoint sum of 4/(1+x²) over [0, 1]."""
    width = 1.0 / TERMS
    return width * sum(4.0 / (1.0 + ((i + 0.5) * width) ** 2) for i in range(rank, TERMS, size))


def gather(part: float, size: int, address: tuple[str, int]) -> float:
    """Rank 0: its own part and one from every other rank."""
    total = part
    with socket.create_server(address) as door:
        door.settimeout(PATIENCE_S)
        for _ in range(size - 1):
            peer, _ = door.accept()
            with peer:
                rank, other = struct.unpack("!id", peer.recv(12, socket.MSG_WAITALL))
            print(f"rank 0: got {other:.12f} from rank {rank}", flush=True)
            total += other
    return total


def send(part: float, rank: int, address: tuple[str, int]) -> None:
    """Any other rank: hand the part to rank 0, which may not listen yet."""
    give_up = time.monotonic() + PATIENCE_S
    while True:
        try:
            with socket.create_connection(address, timeout=PATIENCE_S) as door:
                door.sendall(struct.pack("!id", rank, part))
            return
        except ConnectionRefusedError:
            if time.monotonic() > give_up:
                raise
            time.sleep(0.05)


def main() -> None:
    """One rank of the gang."""
    rank, size = int(os.environ["RANK"]), int(os.environ["WORLD_SIZE"])
    address = (os.environ["MASTER_ADDR"], int(os.environ["MASTER_PORT"]))
    print(f"rank {rank} of {size}: pid {os.getpid()}, summing {TERMS // size:,} terms", flush=True)
    part = share(rank, size)
    if rank:
        send(part, rank, address)
        print(f"rank {rank}: handed in {part:.12f}", flush=True)
    else:
        print(f"rank 0: pi = {gather(part, size, address):.12f}", flush=True)


if __name__ == "__main__":
    main()
