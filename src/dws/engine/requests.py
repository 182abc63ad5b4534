"""What people do with requests: submit, amend, cancel, release, extend, delete.

Each verb is one unit of writing: check access, look the subject up, make one lifecycle step, answer. A
call that carries a call id is remembered for a day; repeating it answers the same and changes nothing.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from dws.engine import access, instances, ledger, replies, reservations
from dws.engine.books import Books
from dws.engine.commands import Amend, Extend, Release, Submit
from dws.engine.ports import Reader
from dws.engine.write import Write
from dws.model import events as ev
from dws.model.access import Principal
from dws.model.demand import ANY_RESERVATION, UNTIL_END, Demand
from dws.model.errors import AlreadyExists, FailedPrecondition, InvalidArgument, NotFound
from dws.model.evolve import evolve
from dws.model.names import RequestId, check_labels, check_name, check_project, derive_name
from dws.model.request import CapacityRequest, EndReason, Grant, InstanceState, RequestState, Workload
from dws.model.reservation import ReservationState
from dws.model.time import FOREVER
from dws.planner import admission, advise
from dws.planner.options import PolicyOptions
from dws.planner.plan import Extension

ARRAY_MAX: Final = 1_000
PRIORITY_MAX: Final = 1_000_000
COMMAND_MAX: Final = 128 * 1024


def look_up(reader: Reader, project: str, name: str) -> CapacityRequest:
    """The request of that name (the newest) or decimal id. Raises NotFound."""
    request = reader.request_named(project, name)
    if request is None and name.isdecimal():
        request = reader.request(int(name))
    if request is None or request.deleted or request.project != project:
        raise NotFound(f"no request '{name}' in project '{project}' ('dws list' shows them)")
    return request


def _once(
    w: Write,
    who: Principal,
    method: str,
    call_id: str,
    body: object,
    act: Callable[[], list[CapacityRequest]],
) -> list[CapacityRequest]:
    return replies.once(w, who, method, call_id, body, act, w.tx.request)


# --- submit -----------------------------------------------------------------------------------


def submit(w: Write, who: Principal, command: Submit) -> list[CapacityRequest]:
    """Admit and queue one request, or an array of them."""
    access.may_write(who, command.project)
    access.may_run(who, command.workload)
    return _once(w, who, "submit", command.call_id, command, lambda: _submit(w, who, command))


def _submit(w: Write, who: Principal, command: Submit) -> list[CapacityRequest]:
    demand = window(w.now, command.demand, command.wait_s)
    demand = aimed(w.tx, demand, command.project, command.reservation)
    check_submission(command)
    policy = w.policy
    if command.never_fits is not None:
        policy = evolve(policy, never_fits=command.never_fits)
    admit(w.books, policy, w.now, demand, command.project)
    names = _names(w, command)
    return [
        w.submit(
            CapacityRequest(
                id=RequestId(w.ids.next(w.now)),
                name=name,
                project=command.project,
                principal=who.name,
                demand=demand,
                state=RequestState.PENDING,
                submitted_at=w.now,
                priority=command.priority,
                labels=command.labels,
                workload=command.workload,
                on_host_loss=command.on_host_loss or w.policy.on_host_loss,
                array=command.name if command.array else "",
                array_index=index,
            )
        )
        for index, name in enumerate(names)
    ]


def window(now: int, demand: Demand, wait_s: int | None) -> Demand:
    """The demand with "wait no longer than" resolved against the server's clock.

    Raises InvalidArgument when the window is over already.
    """
    if wait_s is not None:
        if wait_s < 0:
            raise InvalidArgument(f"wait: {wait_s} s must not be negative", field="wait")
        latest = min(demand.not_after, FOREVER, max(now, demand.not_before) + wait_s)
        demand = evolve(demand, not_after=latest)
    if demand.not_after < now:
        raise InvalidArgument(
            f"notAfter: the latest start lies {now - demand.not_after} s in the past",
            field="notAfter",
        )
    return demand


def aimed(reader: Reader, demand: Demand, project: str, reservation: str) -> Demand:
    """The demand aimed at the reservation it names: none when that is empty, `any`, NAME or PROJECT/NAME.

    Raises NotFound, PermissionDenied, or FailedPrecondition when that one is over.
    """
    if not reservation:
        return demand
    if reservation == "any":
        return evolve(demand, reservation=ANY_RESERVATION)
    found = reservations.find_for(reader, project, reservation)
    if found.state.is_terminal or found.state is ReservationState.ENDING:
        raise FailedPrecondition(
            f"reservation: '{reservation}' is {found.state}; nothing can start in it", field="reservation"
        )
    return evolve(demand, reservation=found.id)


def admit(books: Books, policy: PolicyOptions, now: int, demand: Demand, project: str) -> None:
    """Raises InvalidArgument or NeverFits when what is asked could never start, here or in the reservation
    it names."""
    reservation = books.reservations.get(demand.reservation)
    if reservation is None:
        admission.check(demand, books.fleet, policy, now)
        return
    booking = books.bookings[reservation.booking or 0]
    admission.check_inside(demand, books.fleet, policy, reservation, booking, project)


def check_submission(command: Submit) -> None:
    """Raises InvalidArgument naming the first field of a submission that breaks a limit."""
    check_project(command.project)
    check_labels(command.labels)
    check_workload(command.workload)
    lengths = [a.duration_s for a in command.demand.alternatives]
    lead_s = command.workload.signal_before_s if command.workload is not None else 0
    if UNTIL_END not in lengths and lead_s > max(lengths):
        raise InvalidArgument(
            f"workload.signalBefore: {lead_s} s before the end is before the start; the run takes "
            f"{max(lengths)} s",
            field="workload.signalBefore",
        )
    if command.name:
        check_name(command.name)
    if not 0 <= command.array <= ARRAY_MAX:
        raise InvalidArgument(
            f"array: {command.array} is outside 0 … {ARRAY_MAX}", field="array"
        )
    check_priority(command.priority)


def check_priority(priority: int) -> None:
    """Raises InvalidArgument when a priority is outside its bounds."""
    if abs(priority) > PRIORITY_MAX:
        raise InvalidArgument(
            f"priority: {priority} is outside -{PRIORITY_MAX} … {PRIORITY_MAX}", field="priority"
        )


def check_workload(workload: Workload | None) -> None:
    """Raises InvalidArgument when a workload is too large or asks for a negative lead."""
    if workload is None:
        return
    size = sum(len(part) for part in workload.command) + sum(
        len(k) + len(v) for k, v in workload.environment.items()
    )
    if size > COMMAND_MAX:
        raise InvalidArgument(
            f"workload: command and environment have {size} characters; at most {COMMAND_MAX}",
            field="workload",
        )
    if workload.signal_before_s < 0:
        raise InvalidArgument("signalBefore: must not be negative", field="signalBefore")
    if workload.directory and not workload.directory.startswith("/"):
        raise InvalidArgument(
            f"workload.directory: '{workload.directory}' is not a whole path such as '/srv/train'",
            field="workload.directory",
        )
    for key, value in workload.environment.items():
        if not key or "=" in key or "\0" in key or "\0" in value:
            raise InvalidArgument(
                f"workload.environment: '{key}' is not a legal variable", field="workload.environment"
            )
    if any("\0" in part for part in workload.command):
        raise InvalidArgument("workload.command: contains a NUL", field="workload.command")


def _names(w: Write, command: Submit) -> list[str]:
    base = command.name or f"r{w.ids.next(w.now):x}"
    names = (
        [derive_name(base, str(index)) for index in range(command.array)]
        if command.array
        else [base]
    )
    for name in names:
        holder = w.tx.request_named(command.project, name)
        if holder is not None and not holder.state.is_terminal:
            raise AlreadyExists(
                f"projects/{command.project}/requests/{name} already exists and is {holder.state}; "
                "take another name, or cancel or release it first",
                field="name",
            )
    return names


# --- while it waits ---------------------------------------------------------------------------


def amend(w: Write, who: Principal, command: Amend) -> list[CapacityRequest]:
    """Change a waiting request; it keeps its age, and its promise unless the demand changed."""
    access.may_write(who, command.project)
    access.may_run(who, command.workload)
    return _once(w, who, "amend", command.call_id, command, lambda: [_amend(w, command)])


def _amend(w: Write, command: Amend) -> CapacityRequest:
    request = look_up(w.tx, command.project, command.name)
    if not request.state.is_waiting:
        raise FailedPrecondition(
            f"request '{request.name}' is {request.state}; only a waiting request can be amended "
            "('dws extend' gives a running one more time)"
        )
    demand = _amended(command.demand or request.demand, command)
    if command.wait_s is not None:
        demand = window(w.now, evolve(demand, not_after=FOREVER), command.wait_s)
    priority = request.priority if command.priority is None else command.priority
    check_priority(priority)
    labels = request.labels if command.labels is None else check_labels(command.labels)
    workload = request.workload if command.workload is None else command.workload
    check_workload(workload)
    if demand != request.demand:
        window(w.now, demand, None)
        admit(w.books, w.policy, w.now, demand, request.project)
        if request.state is RequestState.BOOKED:
            ledger.end(w, request.booking)
            request = w.apply(request, ev.Unbooked(cause="amended by its owner"))
    event = ev.Amended(
        demand=demand,
        priority=priority,
        labels=labels,
        workload=workload,
        on_host_loss=command.on_host_loss or request.on_host_loss,
    )
    return w.apply(request, event)


def _amended(demand: Demand, command: Amend) -> Demand:
    """The demand with the parts that were sent in place of its own."""
    return Demand(
        alternatives=demand.alternatives if command.alternatives is None else command.alternatives,
        not_before=demand.not_before if command.not_before is None else command.not_before,
        not_after=demand.not_after if command.not_after is None else command.not_after,
        reservation=demand.reservation,
        end_by=demand.end_by,
    )


def cancel(
    w: Write, who: Principal, project: str, name: str, call_id: str = ""
) -> list[CapacityRequest]:
    """Stop wanting it: at once while it waits, by giving back while it is being provisioned."""
    access.may_write(who, project)
    return _once(w, who, "cancel", call_id, (project, name), lambda: [_cancel(w, project, name)])


def give_up(w: Write, request: CapacityRequest, cause: str) -> CapacityRequest:
    """One that waits, waits no longer: it is over, because of `cause`."""
    ledger.end(w, request.booking)
    return w.apply(request, ev.WindowClosed(cause=cause), reason=cause)


def _cancel(w: Write, project: str, name: str) -> CapacityRequest:
    request = look_up(w.tx, project, name)
    if request.state is RequestState.ACTIVE:
        raise FailedPrecondition(
            f"request '{request.name}' is ACTIVE: it is already provisioned and cannot be cancelled; "
            "'dws release' gives it back",
            reason="alreadyProvisioned",
        )
    if request.state.is_terminal or (request.state is RequestState.ENDING and not request.requeue):
        raise FailedPrecondition(
            f"request '{request.name}' is {request.state}; only one that waits or is being "
            "provisioned can be cancelled"
        )
    if request.state.is_waiting:
        ledger.end(w, request.booking)
        return w.apply(request, ev.CancelRequested())
    if request.state is RequestState.ENDING:
        return w.apply(request, ev.CancelRequested())
    return instances.give_back_soon(w, w.apply(request, ev.CancelRequested()))


# --- while it runs ----------------------------------------------------------------------------


def release(w: Write, who: Principal, command: Release) -> list[CapacityRequest]:
    """Give back early, whole or by instance; the bill of what is given back ends now."""
    access.may_write(who, command.project)
    return _once(w, who, "release", command.call_id, command, lambda: [_release(w, who, command)])


def _release(w: Write, who: Principal, command: Release) -> CapacityRequest:
    request = look_up(w.tx, command.project, command.name)
    if request.state.is_waiting or request.state is RequestState.PROVISIONING:
        raise FailedPrecondition(
            f"request '{request.name}' is {request.state} and holds nothing yet; 'dws cancel' ends it"
        )
    if request.state is not RequestState.ACTIVE:
        raise FailedPrecondition(f"request '{request.name}' is {request.state}; nothing to release")
    grant = instances.granted(request)
    in_use = {i.rank for i in grant.instances if i.is_held and i.state is not InstanceState.RELEASING}
    unknown = sorted(set(command.ranks) - {i.rank for i in grant.instances})
    if unknown:
        raise InvalidArgument(
            f"ranks: {unknown[0]} is not a rank of '{request.name}' (0 … {len(grant.instances) - 1})",
            field="ranks",
        )
    ranks = tuple(sorted(set(command.ranks) & in_use))
    _refuse_to_tear(request.name, grant, set(command.ranks))
    if command.ranks and not ranks:
        return request
    if command.ranks and set(ranks) != in_use:
        return instances.part_released(w, request, ranks)
    return instances.ended(
        w, request, EndReason.RELEASED, f"released by {who.name}", actor=who.name
    )


def _refuse_to_tear(name: str, grant: Grant, ranks: set[int]) -> None:
    """Raises InvalidArgument when some machines of a slice would be given back and others kept."""
    for rank in sorted(ranks):
        mates = [i.rank for i in grant.slice_mates(rank)]
        if not ranks.issuperset(mates):
            raise InvalidArgument(
                f"ranks: {rank} is part of a {grant.topology} slice of '{name}', which is given back as a "
                f"whole: ranks {mates[0]} … {mates[-1]}",
                field="ranks",
            )


def extend(w: Write, who: Principal, command: Extend) -> tuple[CapacityRequest, Extension, int]:
    """Run longer if that breaks no promise: (the request, how far it could go, what was done)."""
    access.may_write(who, command.project)
    request = look_up(w.tx, command.project, command.name)
    if request.state is not RequestState.ACTIVE:
        raise FailedPrecondition(
            f"request '{request.name}' is {request.state}; only a running request can be extended"
        )
    if command.by_s < 1:
        raise InvalidArgument(f"by: {command.by_s} s; at least 1 s is needed", field="by")
    if command.call_id and w.tx.idempotent(who.name, "extend", command.call_id) is not None:
        return request, Extension(asked_s=command.by_s, longest_s=0, reason=None), 0
    extension = advise.extension(w.books.snapshot(), w.policy, w.now, request, command.by_s)
    applied = command.by_s if extension.longest_s >= command.by_s else extension.longest_s
    if command.dry_run or (applied < command.by_s and not command.at_most) or applied == 0:
        return request, extension, 0
    grant = instances.granted(request)
    ends_at = grant.ends_at + applied
    booking = w.books.bookings[grant.booking]
    ledger.set_end(w, grant.booking, booking.span.end + applied)
    request = w.apply(request, ev.Extended(ends_at=ends_at), actor=who.name)
    instances.schedule_warnings(w, request)
    _once(w, who, "extend", command.call_id, command, lambda: [request])
    return request, extension, applied


def delete(w: Write, who: Principal, project: str, name: str) -> None:
    """Put the record of a finished request away; its name is free at once."""
    access.may_write(who, project)
    request = look_up(w.tx, project, name)
    if not request.state.is_terminal:
        raise FailedPrecondition(
            f"request '{request.name}' is {request.state}; cancel or release it first"
        )
    w.apply(request, ev.Deleted())
