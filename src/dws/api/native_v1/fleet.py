"""The fleet: how it stands, declaring it anew, draining, failing and repairing hosts."""

from __future__ import annotations

from typing import Final

from dws.api.method import Call, Method, NoQuery
from dws.api.native_v1 import convert
from dws.declared import fleetfile
from dws.model.access import Role
from dws.wire import native_v1 as wire


def get(call: Call[None, NoQuery]) -> wire.Fleet:
    """How the fleet stands now."""
    return convert.fleet(call.engine.fleet(call.who))


def apply(call: Call[wire.ApplyFleetRequest, NoQuery]) -> wire.ApplyFleetAnswer:
    """Declare the fleet anew, or say what that would change. Zone `local` stays as the server found it."""
    engine = call.engine
    new = fleetfile.parse(call.body.toml, backends=engine.backend_names)
    known = engine.declared_fleet(call.who)
    for zone in known.zones:
        if zone.name == fleetfile.LOCAL_ZONE:
            new = fleetfile.with_local(new, zone, [p for p in known.pools if p.zone == zone.name])
    told = engine.apply_fleet(call.who, new, confirm=call.body.confirm)
    return wire.ApplyFleetAnswer(version=told.version, lines=list(told.lines), applied=told.applied)


def change_hosts(call: Call[wire.ChangeHostsRequest, NoQuery]) -> wire.ChangeHostsAnswer:
    """Drain, fail or repair, or say whom that would affect."""
    return convert.hosts_changed(call.engine.change_hosts(call.who, convert.change_hosts(call.body)))


def defrag(call: Call[wire.DefragRequest, NoQuery]) -> wire.DefragAnswer:
    """Who is in the way of a shape."""
    with convert.under("wanted"):
        wanted = convert.alternative(call.body.wanted, may_be_open=True)
    found = call.engine.defrag(call.who, wanted)
    return wire.DefragAnswer(rooms=[convert.defrag_room(each) for each in found])


METHODS: Final = (
    Method(
        id="dws.fleet.get",
        verb="GET",
        path="/dws/v1/fleet",
        summary="Zones, pools and hosts as they stand now.",
        response=wire.Fleet,
        handler=get,
    ),
    Method(
        id="dws.fleet.apply",
        verb="POST",
        path="/dws/v1/fleet:apply",
        summary="Declare the fleet anew; without confirm only say what would change.",
        role=Role.OPERATOR,
        request=wire.ApplyFleetRequest,
        response=wire.ApplyFleetAnswer,
        handler=apply,
    ),
    Method(
        id="dws.fleet.changeHosts",
        verb="POST",
        path="/dws/v1/fleet:changeHosts",
        summary="Drain, fail or repair hosts; without confirm only say whom it would affect.",
        role=Role.OPERATOR,
        request=wire.ChangeHostsRequest,
        response=wire.ChangeHostsAnswer,
        handler=change_hosts,
    ),
    Method(
        id="dws.fleet.defrag",
        verb="POST",
        path="/dws/v1/fleet:defrag",
        summary="Whose work would have to end or move to make room for a shape. Changes nothing.",
        role=Role.OPERATOR,
        request=wire.DefragRequest,
        response=wire.DefragAnswer,
        handler=defrag,
    ),
)
