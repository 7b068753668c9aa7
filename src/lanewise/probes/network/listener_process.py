"""A listener in a second process on this machine, so that one command measures loopback."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields

from lanewise.options.measure_network import NetworkSideOptions
from lanewise.probes.network.listener import open_listener, serve
from lanewise.probes.network.messages import LOOPBACK

_CLIENT_S, _EXIT_S = 20.0, 5.0


@contextmanager
def listener_process(side: NetworkSideOptions) -> Iterator[tuple[str, int]]:
    """The address of a listener in its own process, which ends with its only client."""
    with open_listener(f"{LOOPBACK}:0") as listener:
        address = listener.getsockname()[:2]
        options = {member.name: getattr(side, member.name) for member in fields(NetworkSideOptions)}
        argument = json.dumps([listener.fileno(), options])
        process = subprocess.Popen(
            [sys.executable, "-m", "lanewise.probes.network.listener_process", argument],
            pass_fds=[listener.fileno()], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            start_new_session=True,  # a Ctrl-C is for the client; this process ends with it
        )  # fmt: skip
    try:
        yield address
    finally:
        try:
            process.wait(_EXIT_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def main() -> None:
    """Serve one client on the listening socket that was handed over."""
    import socket

    number, options = json.loads(sys.argv[1])
    with socket.socket(fileno=number) as listener:
        serve(listener, NetworkSideOptions(**options), once=True, patience=_CLIENT_S)


if __name__ == "__main__":
    main()
