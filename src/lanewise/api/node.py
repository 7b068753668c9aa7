"""An Accelerator node of load tests over a network: it serves the queries of Frontends."""

from __future__ import annotations

import re
import socket
from collections.abc import Callable
from contextlib import closing
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from lanewise.loadtest.accelerator import Accelerator
    from lanewise.options.serve import ServeOptions


def serve_node(
    options: ServeOptions | None = None,
    *,
    say: Callable[[str], None] = lambda _: None,
    show_secret: Callable[[str], None] = print,
    on_ready: Callable[[int], None] = lambda _: None,
) -> None:
    """Answer the queries of one Frontend after the other (`lanewise loadtest run --nodes`) until interrupted.

    The engines are loaded once. Loopback unless `options.listen` names another address. Only Frontends that know the
    secret are served: that of `options.secret_file` or LANEWISE_SECRET, else a new one, which `show_secret` gets. `say`
    gets lines about the node and its sessions; `on_ready` (a whole number) is called with its port when it listens.

    Raises CannotMeasure if the address or a device cannot be used, InputError for options and files that do not fit,
    MissingDependency for what the engine lacks.

    >>> from lanewise.options.serve import ServeOptions
    >>> lanewise.serve_node(ServeOptions(engine="synthetic"))  # runs until it is interrupted  # doctest: +SKIP
    """
    from lanewise.control.handshake import read_secret
    from lanewise.control.listener import open_listener
    from lanewise.control.rdma import usable_ports
    from lanewise.control.tls import listener_tls
    from lanewise.dispatch.messages import SERVICE
    from lanewise.dispatch.node import serve_queries
    from lanewise.loadtest.accelerator import Accelerator
    from lanewise.options.serve import ServeOptions

    options = options or ServeOptions()
    secret = read_secret(options.secret_file)
    tls = listener_tls(options.tls_certificate, options.tls_key)
    if options.device is not None or options.gid_index is not None:
        usable_ports(options.device, options.gid_index)
    with open_listener(options.listen, SERVICE) as listener:
        host, port = listener.getsockname()[:2]
        name = options.name or f"{re.sub('[^A-Za-z0-9._-]', '-', socket.gethostname())[:50]}:{port}"
        accelerator = Accelerator(options, name, say, options.device, options.gid_index, options.gpu_memory)
        with closing(accelerator):
            _look_for_gpu_memory(options, say)
            say(f"{name}: {_facts(accelerator)}")
            end = "" if options.once else "; Ctrl-C ends it"
            say(f"listening on {host} port {port}{' with TLS' if tls else ''}{end}")
            secret = secret or _new_secret(say, show_secret)
            on_ready(port)
            serve_queries(
                listener, secret, accelerator, once=options.once, say=lambda text: say(f"{_now()} {name}: {text}"),
                tls=tls,
            )  # fmt: skip


def _new_secret(say: Callable[[str], None], show_secret: Callable[[str], None]) -> str:
    """A secret for the Frontends, after it was shown."""
    from lanewise.control.handshake import new_secret

    secret = new_secret()
    say("Frontends need this secret, in LANEWISE_SECRET or a --secret-file:")
    show_secret(secret)
    return secret


def _facts(accelerator: Accelerator) -> str:
    """What a node runs, in words: 'engine torch; model resnet50'."""
    known = {key.replace("_", " "): value for key, value in accelerator.setup.items() if value not in ("", None)}
    return "; ".join(f"{key} {value}" for key, value in known.items())


def _look_for_gpu_memory(options: ServeOptions, say: Callable[[str], None]) -> None:
    """Say what is known of GPU memory before a Frontend comes; CannotMeasure where it is missing and must be there."""
    from lanewise.errors import CannotMeasure
    from lanewise.loadtest.gpu_memory import check_gpu_memory
    from lanewise.options.serve import OFF, ON

    if options.gpu_memory == OFF:
        return
    try:
        check_gpu_memory(options)
        say("note: --gpu-memory has never run on RDMA hardware; check what arrives with loadtest run --audit payload")
    except CannotMeasure as error:
        if options.gpu_memory == ON:
            raise
        say(f"note: samples arrive in host memory: {error}\nhint: {error.hint}")


def _now() -> str:
    return f"{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
