"""The KV probe: blocks scattered in GPU, host memory or a file, moved there, back, and both ways at once.

A transfer's time is that of the CPU, from the first post to the last block's arrival. Each path is warm, and every
block of memory compared outside the timed part.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator

from lanewise import units
from lanewise.blocks.pieces import Pieces, pieces_of
from lanewise.errors import InputError, MissingDependency
from lanewise.options.measure_kv import MeasureKvOptions
from lanewise.probes.gpu.gpus import Gpus
from lanewise.probes.machine import native_errors, needs_linux
from lanewise.probes.storage.session import StorageProgress
from lanewise.results.sample import Sample

_WORD, _PAGE = 16, 4096  # what kernels read at once; what direct reads and writes are made of


class KvProbe:
    """Measures blocks; without GPUs those between host memory and a file."""

    def __init__(self, gpus: Gpus | None) -> None:
        self.gpus = gpus

    def machine_facts(self) -> dict[str, str]:
        """Driver, GPUs and links, for a run's record of the machine."""
        return self.gpus.machine_facts() if self.gpus is not None else {}

    def run(
        self, options: MeasureKvOptions, on_progress: Callable[[StorageProgress], None] | None = None
    ) -> Iterator[Sample]:
        """Each sample as soon as it is taken; closing the iterator frees buffers and removes test files."""
        from lanewise.probes.kv.copies import block_copies
        from lanewise.probes.kv.files import block_files

        pieces = pieces_of(options.blocks)
        if options.over is not None:
            from lanewise.probes.kv.network import block_network

            yield from block_network(options, pieces)
            return
        _check_size(pieces, _WORD if options.memory is not None else _PAGE)
        for gpu in options.gpus:
            assert self.gpus is not None
            self.gpus.device(gpu)  # UnknownName
        with native_errors():
            if options.memory is not None:
                assert self.gpus is not None
                yield from block_copies(options, pieces, self.gpus)
            else:
                yield from block_files(options, pieces, self.gpus, on_progress or (lambda _: None))


def open_kv(options: MeasureKvOptions, library: str = "") -> KvProbe:
    """A probe for these ends over the CUDA driver `library`; MissingDependency if they need one and none is here."""
    needs_linux("blocks of memory")
    if not options.gpus:
        return KvProbe(None)
    from lanewise.probes.gpu.probe import open_gpus

    try:
        return KvProbe(open_gpus(library).gpus)
    except MissingDependency as error:
        hint = "without a GPU, blocks between host memory and a file: --from host --to FOLDER"
        raise MissingDependency(error.cause, hint=hint) from None


def _check_size(pieces: Pieces, unit: int) -> None:
    if pieces.size % unit:
        size, whole = units.show(pieces.size, "B", 12), units.show(unit, "B")
        raise InputError(f"blocks of {size} are no multiple of {whole}", hint="for example '1024 x 64 KiB'")
