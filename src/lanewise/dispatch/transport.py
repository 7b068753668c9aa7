"""What every transport of queries does on either side, and the errors of the native part."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from lanewise.control.rdma import RdmaAddress
from lanewise.dispatch.messages import ConnectionShape, OpenReply, TransportKind
from lanewise.errors import CannotMeasure

if TYPE_CHECKING:
    from lanewise._native import NetworkSystem, NodeSession

JOIN_S = 5.0  # for the connections of a session to come together


class NodeTransport(ABC):
    """A node's side of the connections of one session; `nonce` is what their tokens are made of."""

    nonce: str

    def addresses(self) -> list[RdmaAddress]:
        """Of queue pairs, where it has some."""
        return []

    @abstractmethod
    def join(self, session: NodeSession, shape: ConnectionShape, peers: Sequence[RdmaAddress]) -> None:
        """Give the session its connections, whose samples go to its slots one after the other; CannotMeasure.

        `peers`: addresses of the Frontend's queue pairs.
        """

    def close(self) -> None:
        """Free what no connection holds."""
        return


class FrontendTransport(ABC):
    """The Frontend's side: first `offer`, then the node joins, then `join`. `name` is that of --transport.

    `within_host`: after `join`, whether queries stay within one host. `devices`: RDMA devices of its connections,
    `node_ports`: indices of the node's ports for them.
    """

    name: TransportKind
    within_host = False
    devices: Sequence[str] = ()
    node_ports: Sequence[int] = ()

    @abstractmethod
    def offer(self, reply: OpenReply, shape: ConnectionShape) -> list[RdmaAddress]:
        """Show the node where its connections are, and return the addresses of queue pairs; CannotMeasure."""

    @abstractmethod
    def join(self, system: NetworkSystem, node: int, shape: ConnectionShape) -> None:
        """Give the connections to the system, as those of that node; CannotMeasure where that fails."""

    @abstractmethod
    def close(self) -> None:
        """Let go what no system has taken."""


@contextmanager
def native_failures() -> Iterator[None]:
    """Turns failures of the native part, and a lack of threads, descriptors or memory, into CannotMeasure."""
    from lanewise._native import ProbeFailure

    try:
        yield
    except ProbeFailure as failure:
        cause, hint = (*failure.args, "")[:2]
        raise CannotMeasure(str(cause), hint=str(hint)) from None
    except (RuntimeError, MemoryError) as error:
        hint = "fewer --connections, or a smaller --depth"
        raise CannotMeasure(f"this machine cannot go on: {error}", hint=hint) from None
    except OSError as error:
        hint = "ulimit -n raises the number of open files"
        raise CannotMeasure(f"this machine cannot go on: {error.strerror or error}", hint=hint) from None
