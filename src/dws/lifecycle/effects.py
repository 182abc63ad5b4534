"""What a step may ask for. The engine turns effects into work items in the same transaction."""

from __future__ import annotations

from dataclasses import dataclass

from dws.model.work import WorkKind


@dataclass(frozen=True, slots=True, kw_only=True)
class Do:
    """Work of `kind` for the subject, due at `at`; replaces one of the same kind and tag."""

    kind: WorkKind
    at: int
    tag: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Drop:
    """Forget the subject's work of these kinds; all of it when none is named."""

    kinds: tuple[WorkKind, ...] = ()


Effect = Do | Drop
