"""Finds routes: the way data takes by default, and every sensible way between two ends."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from lanewise.errors import Unreachable, unknown_name
from lanewise.routes.model import Hop, Route, Via
from lanewise.topology.model import Kind, LinkKind

if TYPE_CHECKING:
    from lanewise.topology.model import System


def endpoint(system: System, text: str, peer: str = "") -> str:
    if text in system.devices:
        return text
    host, _, numa = text.partition(":")
    if host == "host" and host not in system.hosts and len(system.hosts) == 1:
        host = system.hosts[0]
    if host not in system.hosts:
        raise unknown_name(f"device of {system.name}", text, [*system.devices, *system.hosts, *system.volumes])
    cpus = system.of_kind(Kind.CPU, host=host)
    if numa:
        for c in cpus:
            if system.device(c).numa == int(numa):
                return c
        raise unknown_name("NUMA node", text, [f"{host}:{system.device(c).numa}" for c in cpus])
    if peer in system.devices and system.device(peer).host == host:
        up = _up(system, peer)
        if up:
            return up[-1].end
    return cpus[0]


def _forward(system, node, prev, nxt):
    d = system.device(node)
    if d.kind is Kind.SWITCH:
        return d.joins(prev, nxt)
    return d.kind is Kind.RAID


def _bfs(system, src, goal, kinds, fabric=True):
    start = (src, "")
    seen = {start: None}
    q = deque([start])
    while q:
        node, prev = q.popleft()
        if node != src and goal(node):
            hops = []
            key = (node, prev)
            while seen[key] is not None:
                parent, hop = seen[key]
                hops.append(hop)
                key = parent
            return list(reversed(hops))
        for link in system.links_at(node):
            if link.kind not in kinds:
                continue
            nxt = link.other(node)
            if node != src and not _forward(system, node, prev, nxt):
                continue
            if (nxt, node) not in seen and nxt != src:
                seen[nxt, node] = ((node, prev), Hop(link, link.a == node))
                q.append((nxt, node))
    return None


_P = (LinkKind.PCIE, LinkKind.FABRIC)


def _up(system, name):
    domain = system.domain_of(name)
    host = system.device(name).host
    if host is None:
        raise Unreachable(f"{name} is bound to no host", hint=f"attach it first: lanewise system attach {system.name} {name} HOST")
    goal = (lambda n: n == domain.root) if domain else (lambda n: system.device(n).kind is Kind.CPU and system.device(n).host == host)
    return _bfs(system, name, goal, _P)


def _down(system, name):
    up = _up(system, name)
    return [Hop(h.link, not h.down) for h in reversed(up)] if up else None


def _socket(system, a, b):
    if a == b:
        return []
    for link in system.links_between(a, b):
        if link.kind is LinkKind.SOCKET:
            return [Hop(link, link.a == a)]
    raise Unreachable(f"no inter-socket link between {a} and {b}")


def _pcie(system, a, b):
    ka, kb = system.device(a).kind, system.device(b).kind
    if ka is Kind.CPU and kb is Kind.CPU:
        return _socket(system, a, b)
    if ka is Kind.CPU:
        down = _down(system, b)
        return _socket(system, a, down[0].start) + down
    if kb is Kind.CPU:
        up = _up(system, a)
        return up + _socket(system, up[-1].end, b)
    da, db = system.domain_of(a), system.domain_of(b)
    same = da is db or system.policies.cross_domain_p2p
    if same:
        direct = _bfs(system, a, lambda n: n == b, _P)
        if direct and not any(h.end in system.policies.acs_redirect for h in direct[:-1]):
            return direct
    up, down = _up(system, a), _down(system, b)
    return up + _socket(system, up[-1].end, down[0].start) + down


def _nvlink(system, a, b):
    for link in system.links_between(a, b):
        if link.kind is LinkKind.NVLINK:
            return [Hop(link, link.a == a)]
    for link in system.links_at(a):
        if link.kind is LinkKind.NVLINK and system.device(link.other(a)).kind is Kind.NVSWITCH:
            for second in system.links_between(link.other(a), b):
                return [Hop(link, link.a == a), Hop(second, second.a == second.other(b))]
    return None


def _cls(system, hops):
    cpus = [h.end for h in hops if system.device(h.end).kind is Kind.CPU]
    if any(h.link.kind is LinkKind.SOCKET for h in hops):
        return "SYS"
    if cpus:
        return "PHB"
    return "PIX" if len(hops) <= 2 else "PXB"


def _scope(system, cpu):
    scope = system.policies.peer_scope.get(cpu)
    if scope is None:
        part = system.part(cpu)
        scope = part.figure("peer.scope").value if part else None
    return scope or "root-complex"


def route(system: System, src: str, dst: str, p2p: bool = True) -> Route:
    a, b = endpoint(system, src, dst), endpoint(system, dst, src)
    da, db = system.device(a), system.device(b)
    if da.kind is Kind.GPU and db.kind is Kind.GPU:
        nv = _nvlink(system, a, b)
        if nv and p2p:
            return Route(a, b, Via.NVLINK, f"NV{nv[0].link.count}", tuple(nv))
        hops = _pcie(system, a, b)
        cls = _cls(system, hops)
        sockets = [h for h in hops if h.link.kind is LinkKind.SOCKET]
        cpus = [h.end for h in hops if system.device(h.end).kind is Kind.CPU]
        ok = p2p and (not cpus or {"none": False, "root-complex": not sockets, "socket": not sockets, "system": True}[_scope(system, cpus[0])])
        if ok:
            return Route(a, b, Via.PCIE, cls, tuple(hops))
        mem = _up(system, a)[-1].end
        s1, s2 = route(system, a, mem), route(system, mem, b)
        return Route(a, b, Via.STAGED, cls, s1.hops + s2.hops, stages=(s1, s2))
    if da.host != db.host and da.host and db.host:
        return _net(system, a, b)
    hops = _pcie(system, a, b)
    return Route(a, b, Via.PCIE, _cls(system, hops), tuple(hops))


def _net(system, a, b):
    def nics(x):
        out = []
        for n in system.of_kind(Kind.NIC, host=system.device(x).host):
            out.append((len(_pcie(system, x, n)), n))
        return [n for _, n in sorted(out, key=lambda t: t[0])]
    nb = nics(b)[0]
    idx = system.of_kind(Kind.NIC, host=system.device(b).host).index(nb)
    mine = system.of_kind(Kind.NIC, host=system.device(a).host)
    na = mine[idx % len(mine)]
    l1 = next(l for l in system.links_at(na) if l.kind is LinkKind.NETWORK)
    l2 = next(l for l in system.links_at(nb) if l.kind is LinkKind.NETWORK)
    hops = _pcie(system, a, na) + [Hop(l1, l1.a == na), Hop(l2, l2.b == nb)] + _pcie(system, nb, b)
    return Route(a, b, Via.NETWORK, "NET", tuple(hops))


def routes(system, src, dst):
    return (route(system, src, dst),)
