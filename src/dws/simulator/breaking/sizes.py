"""The same pool a little larger or smaller: by a host at the end of its line, or by a whole pod."""

from __future__ import annotations

from dataclasses import replace
from typing import Final

from dws.model.topology import CUBE_LEVEL, Domain, Pool

HOSTS_MAX: Final = 20
PODS_MAX: Final = 2


def larger(pool: Pool) -> Pool:
    """One host more, in the last block, or one pod; the same when it is large already."""
    if pool.topology:
        return _with_one_pod_more(pool)
    if len(pool.hosts) >= HOSTS_MAX:
        return pool
    *rest, last = pool.domains
    name = f"{pool.name}-h{len(pool.hosts)}"
    grown = replace(last, size=last.size + pool.host_units)
    return replace(pool, hosts=(*pool.hosts, name), domains=(*rest, grown))


def smaller(pool: Pool) -> Pool:
    """Without the last host of the line, and without its block when it was alone there; or without the last
    pod. The same when there is no more than one."""
    if pool.topology:
        return _with_one_pod_less(pool)
    if len(pool.hosts) == 1:
        return pool
    *rest, last = pool.domains
    left = replace(last, size=last.size - pool.host_units)
    return replace(pool, hosts=pool.hosts[:-1], domains=(*rest, left) if left.size else tuple(rest))


def _pods(pool: Pool) -> list[Domain]:
    return [d for d in pool.domains if d.level != CUBE_LEVEL]


def _with_one_pod_more(pool: Pool) -> Pool:
    pods = _pods(pool)
    if len(pods) >= PODS_MAX:
        return pool
    number, size = len(pods) + 1, pods[0].size
    prefix = f"{pool.name}-1-"
    names = (f"{pool.name}-{number}-{h.removeprefix(prefix)}" for h in pool.hosts[: size // pool.host_units])
    cubes = [d for d in pool.domains if d.level == CUBE_LEVEL]
    more = (
        replace(d, name=f"cube{len(cubes) + i + 1}", first=d.first + size * len(pods))
        for i, d in enumerate(cubes[: len(cubes) // len(pods)])
    )
    pod = replace(pods[-1], name=f"pod{number}", first=pods[-1].first + size)
    return replace(pool, hosts=(*pool.hosts, *names), domains=(*pods, pod, *cubes, *more))


def _with_one_pod_less(pool: Pool) -> Pool:
    pods = _pods(pool)
    if len(pods) == 1:
        return pool
    end = pods[-1].first
    domains = tuple(d for d in pool.domains if d.first < end)
    return replace(pool, hosts=pool.hosts[: end // pool.host_units], domains=domains)
