"""Where events may be pushed to: never this machine, nor a link-local address, where clouds keep credentials."""

from __future__ import annotations

import ipaddress
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from lanewise.director.redfish.messages import RedfishError, refusal
from lanewise.errors import printable, shorten

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
_LONGEST = 1000
_THIS_NETWORK = ipaddress.ip_network("0.0.0.0/8")
_TRANSLATED = (ipaddress.ip_network("64:ff9b::/96"), ipaddress.ip_network("::/96"))


@dataclass(frozen=True, slots=True)
class PushTarget:
    """The parts of a destination."""

    scheme: str
    host: str
    port: int
    path: str


def parse_target(destination: str) -> PushTarget:
    """The parts of a destination's URL; RedfishError 400 unless it is plain http or https without credentials."""
    wrong = refusal(
        400, "Base.PropertyValueFormatError", shorten(printable(destination)), "Destination", prop="Destination"
    )
    if len(destination) > _LONGEST or any(ord(letter) < 33 or ord(letter) > 126 for letter in destination):
        raise wrong
    try:
        url = urlsplit(destination)
        port = url.port or (443 if url.scheme == "https" else 80)
    except ValueError:
        raise wrong from None
    if (
        url.scheme not in ("http", "https")
        or not url.hostname
        or "@" in url.netloc
        or url.fragment
        or "\\" in destination
    ):
        raise wrong
    path = (url.path or "/") + (f"?{url.query}" if url.query else "")
    return PushTarget(url.scheme, url.hostname, port, path)


def allowed(address: Address, networks: Sequence[str]) -> bool:
    """Whether events may go to this address: never to this machine or its own links, unless the operator says so.

    With `networks`, only to those.
    """
    if networks:
        return any(address in ipaddress.ip_network(network) for network in networks)
    if isinstance(address, ipaddress.IPv6Address):
        inner = address.ipv4_mapped or address.sixtofour
        if inner is not None:
            return allowed(inner, networks)
        if address.teredo or any(address in network for network in _TRANSLATED):
            return False
    special = address.is_link_local or address.is_multicast or address.is_unspecified or address.is_reserved
    return not (special or address.is_loopback or address in _THIS_NETWORK or _own(address))


def _own(address: Address) -> bool:
    """Whether the address is one of this machine's: the kernel would then send from the address itself."""
    family = socket.AF_INET6 if address.version == 6 else socket.AF_INET
    with socket.socket(family, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect((str(address), 9))  # sends nothing
            return str(probe.getsockname()[0]) == str(address)
        except OSError:
            return False


def resolve(target: PushTarget, networks: Sequence[str]) -> str:
    """The address to connect to; RedfishError 400 unless every address of the host is allowed.

    Connect to exactly this address: the name may stand for another one a moment later.
    """
    try:
        resolved = socket.getaddrinfo(target.host, target.port, type=socket.SOCK_STREAM)
        addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in resolved]
    except (OSError, ValueError, UnicodeError):
        raise _refused(target, "its name cannot be resolved") from None
    if not addresses or not all(allowed(address, networks) for address in addresses):
        raise _refused(target, "its address is local, or outside the networks that the operator allows")
    return str(addresses[0])


def _refused(target: PushTarget, why: str) -> RedfishError:
    return refusal(
        400,
        "Base.PropertyValueError",
        "Destination",
        prop="Destination",
        text=f"Events are not pushed to {shorten(printable(target.host))}: {why}.",
        hint="Choose another destination, or have the operator allow its network.",
    )
