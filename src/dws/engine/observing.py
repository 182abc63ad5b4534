"""Takes in what backends saw.

Facts are idempotent: each is compared with the row it is about. A fact about an attempt that is not the
present one is stale; one that says something of ours still runs where nothing should is answered with a
release, so that no orphan outlives its request.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from dws.engine import hosts, instances, orphans
from dws.engine.committer import Committer
from dws.engine.ports import Backend, BackendUnavailable, Fact, FactKind
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.request import CapacityRequest, EndReason, Grant, InstanceState, RequestState
from dws.model.work import WorkKind

FACTS_PER_WRITE: Final = 256
_HOST_FACTS = (FactKind.HOST_DOWN, FactKind.HOST_UP)


class Observer:
    """Reads one backend's observations from where it stood last."""

    def __init__(self, backend: Backend, committer: Committer) -> None:
        self.backend = backend
        self._committer = committer
        self._cursor = ""
        self._from_start = False

    def start_over(self) -> None:
        """Ask for everything that is true next time, not for news alone: what was missed, or told wrongly,
        is seen then."""
        self._from_start = True

    def observe(self) -> int:
        """Take in what is new; returns how many facts there were. A silent backend says nothing."""
        cursor = "" if self._from_start else self._cursor
        try:
            seen = self.backend.observe(cursor)
        except BackendUnavailable:
            return 0
        self._from_start = False
        for at in range(0, len(seen.facts), FACTS_PER_WRITE):
            facts = seen.facts[at : at + FACTS_PER_WRITE]
            self._committer.write(
                lambda w, facts=facts: take_in(w, facts, self.backend.name),  # type: ignore[misc]
                actor=f"backend:{self.backend.name}",
            )
        self._cursor = seen.cursor
        return len(seen.facts)


def take_in(w: Write, facts: tuple[Fact, ...], backend: str) -> None:
    """Conclude from each fact in order; an instance that is there and that nobody owns is given back."""
    running: dict[int, dict[int, str]] = {}
    gone = {(f.key, f.rank) for f in facts if f.kind in (FactKind.GONE, FactKind.LOST)}
    for fact in facts:
        if running and fact.kind is not FactKind.RUNNING:
            _settle(w, running)
        if fact.kind in _HOST_FACTS:
            _host_fact(w, fact)
            continue
        request = _owner(w.books.holding, fact)
        if request is None:
            there = fact.kind in (FactKind.RUNNING, FactKind.EXITED)
            if there and (fact.key, fact.rank) not in gone:
                orphans.give_back(
                    w, backend=backend, key=fact.key, rank=fact.rank, unit=fact.unit
                )
        elif fact.kind is FactKind.RUNNING:
            if _is_news(instances.granted(request), fact.rank):
                running.setdefault(request.id, {})[fact.rank] = fact.address
        else:
            _instance_fact(w, request, fact)
    _settle(w, running)


def _is_news(grant: Grant, rank: int) -> bool:
    """False when it is known to run: most of what a backend tells when asked for everything."""
    return grant.instances[rank].state is InstanceState.STARTING or grant.unreachable_since > 0


def _settle(w: Write, running: dict[int, dict[int, str]]) -> None:
    """Instances seen running are told together, so that a large gang is one step."""
    for request_id, addresses in running.items():
        request = w.books.holding.get(request_id)
        if request is not None:
            instances.ran(w, _reachable_again(w, request), addresses)
    running.clear()


def _owner(holding: Mapping[int, CapacityRequest], fact: Fact) -> CapacityRequest | None:
    """The request whose present attempt and incarnation of the rank the fact is about."""
    key = instances.parse_key(fact.key)
    if key is None:
        return None
    request_id, attempt, incarnation = key
    request = holding.get(request_id)
    if request is None or request.grant is None or request.grant.attempt != attempt:
        return None
    instance = instances.instance_of(request.grant, fact.rank)
    if instance is None or instance.incarnation != incarnation or not instance.is_held:
        return None
    return request


def _instance_fact(w: Write, request: CapacityRequest, fact: Fact) -> None:
    if fact.at_deadline and request.state is RequestState.ACTIVE:
        request = instances.ended(
            w, request, EndReason.DURATION_REACHED, "the run duration was reached"
        )
    match fact.kind:
        case FactKind.EXITED:
            instances.exited(w, request, fact.rank, fact.code if fact.code is not None else 1)
        case FactKind.GONE:
            _gone(w, request, fact)
        case FactKind.LOST:
            instances.lost(w, request, fact.rank, fact.detail or "the instance vanished")
        case FactKind.FAILED_CHECK:
            _failed_check(w, request, fact)
        case FactKind.UNREACHABLE:
            _unreachable(w, request, fact)
        case FactKind.REACHABLE:
            _reachable_again(w, request)


def _gone(w: Write, request: CapacityRequest, fact: Fact) -> None:
    """Gone is expected of what was given back or has exited, and a loss of what was running."""
    instance = instances.granted(request).instances[fact.rank]
    if request.state is RequestState.ENDING or instance.state in (
        InstanceState.RELEASING,
        InstanceState.EXITED,
    ):
        instances.released(w, request, {fact.rank})
    else:
        instances.lost(w, request, fact.rank, fact.detail or "the instance vanished")


def _failed_check(w: Write, request: CapacityRequest, fact: Fact) -> None:
    grant = instances.granted(request)
    instance = grant.instances[fact.rank]
    cause = f"health check failed on {instance.host}: {fact.detail}"
    hosts.take_down(w, grant.pool, instance.unit, reason=cause, until=0)


def _unreachable(w: Write, request: CapacityRequest, fact: Fact) -> None:
    """Not seen is not dead: the run goes on, and only after the grace may anything be concluded."""
    del fact
    grant = instances.granted(request)
    if grant.unreachable_since or request.state not in (
        RequestState.PROVISIONING,
        RequestState.ACTIVE,
    ):
        return
    w.apply(request, ev.Unreachable(since=w.now))
    w.wake(request.id, WorkKind.UNREACHABLE, w.now + w.policy.unreachable_grace_s)


def _reachable_again(w: Write, request: CapacityRequest) -> CapacityRequest:
    grant = instances.granted(request)
    if grant.unreachable_since and request.state in (
        RequestState.PROVISIONING,
        RequestState.ACTIVE,
    ):
        return w.apply(request, ev.Reachable())
    return request


def _host_fact(w: Write, fact: Fact) -> None:
    pool = next((p for p in w.books.fleet.pools if p.name == fact.pool), None)
    if pool is None or fact.unit >= len(pool.hosts):  # of a host that the fleet has no more
        return
    if fact.kind is FactKind.HOST_DOWN:
        hosts.take_down(w, fact.pool, fact.unit, reason=fact.detail or "the backend lost it", until=0)
    else:
        hosts.bring_back(w, fact.pool, fact.unit, reason=fact.detail or "the backend sees it again")
