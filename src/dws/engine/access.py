"""May this principal do that? One rule per kind of action, asked at the top of each engine verb."""

from __future__ import annotations

from dws.model.access import Principal, Role
from dws.model.errors import PermissionDenied, Unauthenticated
from dws.model.request import Workload


def may_read(who: Principal, project: str) -> None:
    """Raises PermissionDenied when `who` may not see `project`."""
    if who.projects and who.role is not Role.OPERATOR and project not in who.projects:
        raise PermissionDenied(f"'{who.name}' may not see project '{project}'")


def may_write(who: Principal, project: str) -> None:
    """Raises PermissionDenied when `who` may not change things in `project`."""
    may_read(who, project)
    if who.role is Role.VIEWER:
        raise PermissionDenied(f"'{who.name}' may look but not change anything (role viewer)")


def may_operate(who: Principal) -> None:
    """Raises PermissionDenied when `who` may not change the fleet."""
    if who.role is not Role.OPERATOR:
        raise PermissionDenied(
            f"'{who.name}' has role {who.role}; changing the fleet or the clock needs role operator"
        )


def may_run(who: Principal, workload: Workload | None) -> None:
    """Raises Unauthenticated when the workload has a command and the caller showed no token."""
    if workload is not None and workload.command and not who.may_run_programs:
        raise Unauthenticated(
            "running a program needs a token: send 'Authorization: Bearer …' with the token in the "
            "server's token file (the dws command finds it by itself), or leave the command out to "
            "hold the instances",
            reason="programNeedsToken",
        )
