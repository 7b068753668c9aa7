"""Listeners and clients of `measure network` in this process, honest ones and others."""

from __future__ import annotations

from typing import Any

from control import peers
from control.peers import SECRET

from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.network.listener import serve_measurements
from lanewise.probes.network.messages import SERVICE, Acknowledgement, Request
from lanewise.probes.network.session import connect_session

CELL: dict[str, Any] = {"transport": "tcp", "kind": "bandwidth", "bytes": 10, "connections": 1}


def _serve(opened, **options):
    serve_measurements(opened, NetworkSideOptions(), SECRET, **options)


def server(**options):
    return peers.server(_serve, **options)


def friend(address):
    """An honest client's session."""
    return connect_session(address, NetworkSideOptions(), SECRET)


def alive(address):
    with friend(address) as session:
        return session.stream.request(Request(do="close"), Acknowledgement) is not None


def greeted(address):
    """A socket over which both sides have proven themselves, and the handshake."""
    return peers.greeted(address, SERVICE)


def fake_listener(answer):
    """The address of a listener that knows the secret and then says `answer(request)`, a raw line, to each request."""
    return peers.fake_listener(answer, service=SERVICE)
