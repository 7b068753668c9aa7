"""Measures this machine: memory, copies of GPUs, storage, the network between two processes or hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lanewise.options.measure_network import NetworkSideOptions
    from lanewise.probes.gpu.probe import GpuProbe
    from lanewise.probes.host.probe import HostProbe
    from lanewise.probes.network.probe import NetworkProbe
    from lanewise.probes.storage.probe import StorageProbe
    from lanewise.probes.storage.session import StorageProgress
    from lanewise.results.sample import Sample


def measure_host(work: Sequence[str] = (), **options: Any) -> Iterator[Sample]:
    """Samples of this machine's memory by NUMA node and number of threads, as they are taken.

    `work`: copy, read, write, latency (none: all). `options` are the fields of MeasureHostOptions: threads=(1, 8),
    nodes=(0,), bytes=2**30. CannotMeasure where the machine does not allow it.
    """
    from lanewise.options.measure_host import MeasureHostOptions

    return host_probe().run(MeasureHostOptions(tuple(work), **options))


def measure_gpu(flows: str = "", **options: Any) -> Iterator[Sample]:
    """Samples of flows measured together, 'gpu0->gpu1, host:1->gpu0', or of cases; neither: the default set.

    `options` are the fields of MeasureGpuOptions: cases=("nvbandwidth",), devices="0,2", bytes=2**20, no_p2p=True. Each
    sample comes as soon as it is taken; closing the iterator frees everything; `as_measured_run` makes a run of them.
    MissingDependency without a driver, CannotMeasure where a GPU has too little memory, UnknownName for a GPU.
    """
    from lanewise.options.measure_gpu import MeasureGpuOptions

    return gpu_probe().run(MeasureGpuOptions(flows, **options))


def measure_storage(
    paths: str | Path | Sequence[str | Path],
    on_progress: Callable[[StorageProgress], None] | None = None,
    **options: Any,
) -> Iterator[Sample]:
    """Read files, block devices or test files into memory; samples of rates, I/O times and I/Os/s as they are taken.

    `options` are the fields of MeasureStorageOptions, as numbers or texts: io="8 MiB", threads=24,
    modes="direct,cached", to="host0:1", make="1 GB". `on_progress` gets the current rates about ten times a second.
    CannotMeasure or InputError says what cannot be read and why.
    """
    from lanewise.options.measure_storage import storage_options

    names = [paths] if isinstance(paths, str) or not hasattr(paths, "__iter__") else list(paths)
    return storage_probe(on_progress).run(storage_options(tuple(str(path) for path in names), **options))


def measure_network(address: str | None = None, **options: Any) -> Iterator[Sample]:
    """Samples of bandwidth or latency to the listener at HOST[:PORT]; without one over this machine's loopback.

    `options` are the fields of MeasureNetworkOptions: transport="verbs", sizes=(4096,), connections=(1, 4),
    latency=True. CannotMeasure where nothing listens, something else does, or the listener leaves; the samples up to
    then stay valid.
    """
    from lanewise.options.measure_network import MeasureNetworkOptions

    return network_probe().run(MeasureNetworkOptions(address=address, **options))


def host_probe() -> HostProbe:
    """The probe of this machine's memory: its samples, its facts; MissingDependency on any system but Linux."""
    from lanewise.probes.machine import needs_linux

    needs_linux("memory")
    from lanewise.probes.host.probe import HostProbe

    return HostProbe()


def gpu_probe() -> GpuProbe:
    """The probe over this machine's CUDA driver: its samples, its facts of the machine."""
    from lanewise.probes.gpu.probe import open_gpus

    return open_gpus()


def storage_probe(on_progress: Callable[[StorageProgress], None] | None = None) -> StorageProbe:
    """The probe of files and block devices; MissingDependency on any system but Linux."""
    from lanewise.probes.machine import needs_linux

    needs_linux("storage")
    from lanewise.probes.storage.probe import StorageProbe

    return StorageProbe(on_progress)


def network_probe() -> NetworkProbe:
    """The probe of the network between two processes or hosts."""
    from lanewise.probes.network.probe import NetworkProbe

    return NetworkProbe()


def listen_network(
    address: str = "",
    *,
    side: NetworkSideOptions | None = None,
    once: bool = False,
    say: Callable[[str], None] = lambda _: None,
    show_secret: Callable[[str], None] = print,
) -> None:
    """Answer one client after the other at [ADDRESS][:PORT] until interrupted; with `once` a single one.

    Loopback unless another address is named. Only clients that know the secret are served: that of `side.secret_file`
    or LANEWISE_SECRET, else a new one, which `show_secret` gets.
    """
    from lanewise.options.measure_network import NetworkSideOptions
    from lanewise.probes.network import numa
    from lanewise.probes.network.handshake import new_secret, read_secret
    from lanewise.probes.network.listener import open_listener, serve

    side = side or NetworkSideOptions()
    numa.check(side)
    secret = read_secret(side)
    with open_listener(address) as listener:
        host, port = listener.getsockname()[:2]
        say(f"listening on {host} port {port}; Ctrl-C ends it")
        if not secret:
            secret = new_secret()
            say("clients need this secret, in LANEWISE_SECRET or a --secret-file:")
            show_secret(secret)
        serve(listener, side, secret, once=once, say=say)
