"""Measures this machine: memory, copies of GPUs, collectives, storage, the network between two processes or hosts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from lanewise.api.arguments import one_or_more

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

    from lanewise.options.measure_kv import MeasureKvOptions
    from lanewise.options.measure_network import NetworkSideOptions
    from lanewise.probes.collectives.probe import CollectiveProbe
    from lanewise.probes.gpu.probe import GpuProbe
    from lanewise.probes.host.probe import HostProbe
    from lanewise.probes.kv.probe import KvProbe
    from lanewise.probes.load.probe import LoadProbe
    from lanewise.probes.load.session import LoadProgress
    from lanewise.probes.network.probe import NetworkProbe
    from lanewise.probes.storage.probe import StorageProbe
    from lanewise.probes.storage.session import StorageProgress
    from lanewise.results.sample import Sample


def measure_host(work: str | Sequence[str] = (), **options: Any) -> Iterator[Sample]:
    """Samples of this machine's memory bandwidth (B/s) and latency (s) by NUMA node and thread count, as they are
    taken.

    `work` are kinds of memory work: copy, read, write, latency (empty: all). Keywords are the fields of
    MeasureHostOptions.

    Raises UnknownName for another kind of work, MissingDependency on any system but Linux, and CannotMeasure if the
    machine does not allow it, such as too little free memory.

    >>> sample = next(lanewise.measure_host(["copy"], threads=(1,), bytes=2**26))  # measures  # doctest: +SKIP
    >>> round(sample.value / 1e9, 1)  # GB/s  # doctest: +SKIP
    16.1
    """
    from lanewise.options.measure_host import MeasureHostOptions

    return host_probe().run(MeasureHostOptions(tuple(one_or_more(work)), **options))


def measure_gpu(flows: str = "", **options: Any) -> Iterator[Sample]:
    """Samples of copies that start or end at this machine's GPUs, in B/s or s, as they are taken.

    `flows` are measured at the same time: 'gpu0->gpu1, host:1->gpu0'; then each of `cases`, of nvbandwidth's kind.
    Without either, a default set of cases is. Keywords are the fields of MeasureGpuOptions. Closing the iterator frees
    GPU memory; as_measured_run makes a run of the samples.

    Raises MissingDependency without a CUDA driver, CannotMeasure if memory is short or a copy fails, UnknownName for a
    GPU or case that does not exist, FormatError for text that is not a list of flows, and InputError for a flow that
    touches no GPU.

    >>> samples = lanewise.measure_gpu("gpu0->gpu1, gpu1->gpu0")  # needs two GPUs  # doctest: +SKIP
    >>> run = lanewise.as_measured_run(samples)  # doctest: +SKIP
    """
    from lanewise.options.measure_gpu import MeasureGpuOptions

    return gpu_probe().run(MeasureGpuOptions(flows, **options))


def measure_collectives(operations: Sequence[str] | str = "all_reduce", **options: Any) -> Iterator[Sample]:
    """Samples of NCCL's collectives of this machine's GPUs in one process, as they are taken: bus bandwidth in B/s and
    seconds a call, of each size out of place and in place; the data of each size is compared once.

    Keywords are the fields of MeasureCollectivesOptions. The rows are of the identity that those of nccl-tests have.

    Raises MissingDependency without a CUDA driver or libnccl, InputError for fewer than two GPUs, UnknownName for an
    operation or GPU that does not exist, and CannotMeasure if memory is short or a call fails.

    >>> samples = lanewise.measure_collectives(sizes="1MiB:1GiB")  # needs two GPUs and NCCL  # doctest: +SKIP
    >>> run = lanewise.as_measured_run(samples)  # doctest: +SKIP
    """
    from lanewise.options.measure_collectives import MeasureCollectivesOptions

    return collective_probe().run(MeasureCollectivesOptions(tuple(one_or_more(operations)), **options))


def measure_storage(
    paths: str | Path | Sequence[str | Path],
    on_progress: Callable[[StorageProgress], None] | None = None,
    **options: Any,
) -> Iterator[Sample]:
    """Samples of reading files, block devices or test files into host or GPU memory: rates in B/s, I/O times in s,
    I/Os/s.

    Keywords are the fields of MeasureStorageOptions, as numbers in SI units or as text: io="8 MiB", threads=24,
    modes="direct,cached", to="host0:1", make="1 GB". `on_progress` is called with the current rates about ten times a
    second.

    Raises InputError for a file or value that does not fit, UnknownName for a mode that does not exist, CannotMeasure
    for what this machine cannot read, and MissingDependency on any system but Linux.

    >>> samples = lanewise.measure_storage("/dev/nvme0n1", io="1 MiB", threads=8)  # reads a device  # doctest: +SKIP
    >>> run = lanewise.as_measured_run(samples)  # doctest: +SKIP
    """
    from lanewise.options.measure_storage import storage_options

    return storage_probe(on_progress).run(storage_options(tuple(map(str, one_or_more(paths))), **options))


def measure_kv(to: str | Path, blocks: str, source: str = "gpu0", **options: Any) -> Iterator[Sample]:
    """Samples of blocks (pieces of a KV cache) moved from `source` to `to`, back, and both ways at once: rate in B/s,
    time a block in s, share of the rate of long copies (0..1).

    `blocks` is a text such as '1024 x 64 KiB'; `to` and `source` are memory ("gpu0", "host", "host:1"), `to` a folder
    or a new file as well, in which nothing stays behind. Keywords are the fields of MeasureKvOptions, such as
    software=("cuMemcpyBatchAsync",). Rows have the identity of predicted ones (`block_rows`).

    Raises FormatError for text that is no number of blocks, InputError or UnknownName for ends or software that do not
    fit, MissingDependency without a CUDA driver where an end is a GPU, and CannotMeasure if memory is short or data
    arrives wrong.

    >>> samples = lanewise.measure_kv("host", "1024 x 64 KiB")  # needs a GPU  # doctest: +SKIP
    >>> run = lanewise.as_measured_run(samples)  # doctest: +SKIP
    """
    from lanewise.options.measure_kv import MeasureKvOptions

    kv_options = MeasureKvOptions(str(to), blocks, source, **options)
    return kv_probe(kv_options).run(kv_options)


def measure_load(
    files: str | Path | Sequence[str | Path],
    to: str | Sequence[str] = "host0",
    on_progress: Callable[[LoadProgress], None] | None = None,
    **options: Any,
) -> Iterator[Sample]:
    """Samples of loading the tensors of safetensors files to GPUs or host memory: rates in B/s, times in s.

    `to` names GPUs, each of which gets its part ("gpu0,gpu1"), or host memory. Keywords are the fields of
    MeasureLoadOptions. `on_progress` is called about ten times a second with what is going on.

    Raises FormatError for a file that is no safetensors file, InputError or UnknownName for a file or value that does
    not fit, CannotMeasure for what this machine cannot load, and MissingDependency on any system but Linux.

    >>> samples = lanewise.measure_load("model.safetensors", "gpu0", modes=("direct",))  # needs a GPU  # doctest: +SKIP
    >>> run = lanewise.as_measured_run(samples)  # doctest: +SKIP
    """
    from lanewise.options.measure_load import MeasureLoadOptions
    from lanewise.options.option import words

    targets = words(to) if isinstance(to, str) else tuple(to)
    return load_probe(on_progress).run(MeasureLoadOptions(tuple(map(str, one_or_more(files))), targets, **options))


def measure_network(address: str | None = None, **options: Any) -> Iterator[Sample]:
    """Samples of bandwidth (B/s) or round-trip latency (s) to a listener at `address`, HOST[:PORT]; None: over
    loopback.

    The other host runs `lanewise measure network --listen` and shares its secret (LANEWISE_SECRET or `secret_file`).
    Keywords are the fields of MeasureNetworkOptions.

    Raises CannotMeasure if nothing or something else listens there or the listener leaves (samples up to then are
    valid), and InputError for options that do not fit or a secret that is missing.

    >>> samples = lanewise.measure_network("10.0.0.2", connections=(1, 4))  # needs a listener  # doctest: +SKIP
    >>> run = lanewise.as_measured_run(samples)  # doctest: +SKIP
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


def collective_probe() -> CollectiveProbe:
    """The probe over this machine's CUDA driver and NCCL: its samples, its facts of the machine."""
    from lanewise.probes.machine import needs_linux

    needs_linux("collectives")
    from lanewise.probes.collectives.probe import open_collectives

    return open_collectives()


def storage_probe(on_progress: Callable[[StorageProgress], None] | None = None) -> StorageProbe:
    """The probe of files and block devices; MissingDependency on any system but Linux."""
    from lanewise.probes.machine import needs_linux

    needs_linux("storage")
    from lanewise.probes.storage.probe import StorageProbe

    return StorageProbe(on_progress)


def kv_probe(options: MeasureKvOptions) -> KvProbe:
    """The probe of blocks between the ends of `options`; MissingDependency where one is a GPU and none is here."""
    from lanewise.probes.kv.probe import open_kv

    return open_kv(options)


def load_probe(on_progress: Callable[[LoadProgress], None] | None = None) -> LoadProbe:
    """The probe of model loading; MissingDependency on any system but Linux."""
    from lanewise.probes.machine import needs_linux

    needs_linux("loading")
    from lanewise.probes.load.probe import LoadProbe

    return LoadProbe(on_progress)


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
    from lanewise.control.handshake import new_secret, read_secret
    from lanewise.control.listener import open_listener
    from lanewise.control.tls import listener_tls
    from lanewise.errors import InputError
    from lanewise.options.measure_network import NetworkSideOptions
    from lanewise.probes.network import numa
    from lanewise.probes.network.listener import serve_measurements
    from lanewise.probes.network.messages import SERVICE

    side = side or NetworkSideOptions()
    numa.check(side)
    secret = read_secret(side.secret_file)
    if side.tls_ca is not None:
        raise InputError("--tls-ca is an option of the client", hint="--listen takes --tls-certificate and --tls-key")
    tls = listener_tls(side.tls_certificate, side.tls_key)
    with open_listener(address, SERVICE) as listener:
        host, port = listener.getsockname()[:2]
        say(f"listening on {host} port {port}{' with TLS' if tls else ''}; Ctrl-C ends it")
        if not secret:
            secret = new_secret()
            say("clients need this secret, in LANEWISE_SECRET or a --secret-file:")
            show_secret(secret)
        serve_measurements(listener, side, secret, once=once, say=say, tls=tls)
