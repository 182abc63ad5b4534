"""A policy file: TOML with the names of `PolicyOptions`; lengths of time may be written "4h".

max_wait_age_s = "2d"
on_host_loss = "requeue"
warning_leads_s = ["30m", "10m", "1m"]
"""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

from dws.model.errors import InvalidArgument
from dws.wire.timefmt import parse_duration

if TYPE_CHECKING:
    from dws.planner.options import PolicyOptions


def named(name: str) -> PolicyOptions:
    """The preset of that name, else the policy in a file. Raises InvalidArgument when it is neither."""
    from dws.planner.options import PRESETS

    if name in PRESETS:
        return PRESETS[name]
    path = Path(name)
    if not path.is_file():
        raise InvalidArgument(
            f"policy: '{name}' is neither a file nor one of the presets {', '.join(PRESETS)}",
            field="policy",
        )
    return load(path)


def load(path: Path) -> PolicyOptions:
    """The policy in a file. Raises InvalidArgument naming the file and the setting."""
    try:
        return parse(path.read_text(encoding="utf-8"), source=str(path))
    except OSError as error:
        raise InvalidArgument(f"policy: cannot read {path}: {error.strerror}", field="policy") from None


def parse(text: str, *, source: str) -> PolicyOptions:
    """The policy in the text of a file; what it does not name is as by default."""
    import msgspec

    from dws.planner.options import PolicyOptions

    try:
        said = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise InvalidArgument(f"policy: {source}: {error}", field="policy") from None
    known = set(PolicyOptions.__dataclass_fields__)
    for name in said:
        if name not in known:
            raise InvalidArgument(
                f"policy: {source}: there is no setting '{name}' (there are: {', '.join(sorted(known))})",
                field=name,
            )
    try:
        return msgspec.convert({name: _seconds(name, value) for name, value in said.items()}, PolicyOptions)
    except (msgspec.ValidationError, ValueError) as error:
        raise InvalidArgument(f"policy: {source}: {error}", field="policy") from None


def _seconds(name: str, value: object) -> object:
    if not name.endswith("_s"):
        return value
    if isinstance(value, list):
        return [_seconds(name, part) for part in value]
    return parse_duration(value, field=name) if isinstance(value, str) else value
