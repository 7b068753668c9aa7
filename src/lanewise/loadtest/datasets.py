"""Datasets of a load test: samples of one size by index, some with labels."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from lanewise.errors import CannotMeasure, FormatError, InputError, Location, import_extra
from lanewise.loadtest.models.networks import SIDE, Pixels
from lanewise.loadtest.spec import SampleSpec

ENDINGS = (".jpeg", ".jpg", ".png", ".bmp", ".webp")
SHORT_SIDE = 256  # of the image before its centre of 224x224 is cut out
LIST = "val_map.txt"


class Dataset(ABC):
    """Samples by index, all of one spec."""

    spec: SampleSpec

    @abstractmethod
    def __len__(self) -> int:
        """How many there are."""

    @abstractmethod
    def describe(self) -> dict[str, object]:
        """Which dataset, how many samples, how they are made."""

    @abstractmethod
    def sample(self, index: int) -> bytes:
        """The bytes that travel; InputError outside the dataset, FormatError names what is broken."""

    def label(self, index: int) -> int | None:
        """The class of a sample, None where nobody knows."""
        return None

    def _check(self, index: int) -> None:
        if not 0 <= index < len(self):
            raise InputError(f"there is no sample {index} of {len(self)}", hint="count from 0")


class Synthetic(Dataset):
    """Random samples, the same for a seed and an index on every machine, generated when they are read.

    `count` samples of a spec: random bytes, floats uniform in [0, 1), integers below the spec's limits.
    """

    def __init__(self, spec: SampleSpec, count: int, seed: int = 1) -> None:
        if count < 1:
            raise InputError(f"a dataset of {count} samples holds nothing", hint="ask for 1 or more")
        self.spec, self.seed, self._count = spec, seed, count

    def __len__(self) -> int:
        return self._count

    def describe(self) -> dict[str, object]:
        """See Dataset."""
        return {"dataset": "synthetic", "samples": self._count, "sample": str(self.spec), "seed": self.seed}

    def sample(self, index: int) -> bytes:
        """See Dataset."""
        self._check(index)
        drawn, spec = np.random.default_rng([self.seed, index]), self.spec
        if spec.below:
            rows = [drawn.integers(0, limit, spec.shape[1:], spec.dtype) for limit in spec.below]
            return np.stack(rows).tobytes()
        if np.dtype(spec.dtype).kind == "f":
            return drawn.random(spec.shape, np.float32).astype(spec.dtype).tobytes()
        return drawn.bytes(spec.bytes)


class NativeSamples(Dataset):
    """`count` samples of `size` bytes that the native system makes without a dataset, to compare what arrived with."""

    def __init__(self, count: int, size: int) -> None:
        self.spec, self._count = SampleSpec((size,), "uint8"), count

    def __len__(self) -> int:
        return self._count

    def describe(self) -> dict[str, object]:
        """See Dataset."""
        return {"dataset": "synthetic", "samples": self._count, "sample": str(self.spec)}

    def sample(self, index: int) -> bytes:
        """See Dataset."""
        from lanewise._native import synthetic_sample

        self._check(index)
        return synthetic_sample(index, self.spec.bytes)


class ImageFolder(Dataset):
    """A folder of labelled images as ImageNet lies on disks, prepared as MLPerf's reference does.

    Images of `folder` in red, green and blue, the shorter side resized to 256, the centre of 224x224, uint8.

    Labels come from val_map.txt (`file class` a line), else from sub-folders: the class is the folder's place in
    alphabetical order. `limit` takes the first so many (0 is all).
    """

    def __init__(self, folder: Path, limit: int = 0, layout: str = "hwc") -> None:
        self._pillow: Any = import_extra("PIL.Image", "images", "a folder of images needs pillow")
        self.folder = folder
        self.layout = layout
        self.spec = Pixels(layout).spec
        if limit < 0:
            raise InputError(f"a limit of {limit} images is none", hint="1 or more, or 0 for all")
        location = Location(str(folder))
        if not folder.is_dir():
            raise InputError("there is no such folder of images", location=location, hint="name a folder with images")
        try:
            listed = folder / LIST
            images = list(_listed(listed) if listed.exists() else _in_classes(folder))
        except OSError as error:
            raise CannotMeasure(f"{error.filename}: {error.strerror}", hint="make it readable") from error
        if not images:
            hint = f"one sub-folder a class with {', '.join(ENDINGS)}, or {LIST} with `file class` lines"
            raise InputError("no images in it", location=location, hint=hint)
        if limit > len(images):
            raise InputError(f"it has {len(images)} images, not {limit}", location=location, hint="lower the limit")
        self._images = images[: limit or None]

    def __len__(self) -> int:
        return len(self._images)

    def describe(self) -> dict[str, object]:
        """See Dataset."""
        return {
            "dataset": str(self.folder),
            "samples": len(self),
            "sample": str(self.spec),
            "prepared": f"RGB, shorter side {SHORT_SIDE}, centre {SIDE}x{SIDE}, uint8 {self.layout}",
        }

    def file(self, index: int) -> Path:
        """Where a sample comes from; InputError outside the dataset."""
        self._check(index)
        return self._images[index][0]

    def sample(self, index: int) -> bytes:
        """The bytes of one image; FormatError, naming the file, where it is broken."""
        path = self.file(index)
        try:
            with self._pillow.open(path) as image:
                return _prepared(image.convert("RGB"), self.layout, self._pillow)
        except Exception as error:  # decoders raise OSError, SyntaxError, ValueError, struct.error and more
            why = (error.strerror if isinstance(error, OSError) else "") or str(error) or type(error).__name__
            raise FormatError(
                f"not an image that can be read: {why}",
                location=Location(str(path)),
                hint="replace the file, or leave it out of the dataset",
            ) from error

    def label(self, index: int) -> int | None:
        """See Dataset."""
        self._check(index)
        return self._images[index][1]


def _prepared(image: Any, layout: str, pillow: Any) -> bytes:
    width, height = image.size
    scale = SHORT_SIDE / min(width, height)
    # Never below the crop, however long and thin the image.
    wide, high = (max(SHORT_SIDE, round(size * scale)) for size in (width, height))
    left, top = (wide - SIDE) // 2, (high - SIDE) // 2
    cut = image.resize((wide, high), pillow.Resampling.BILINEAR).crop((left, top, left + SIDE, top + SIDE))
    pixels = np.asarray(cut, np.uint8)
    return (pixels.transpose(2, 0, 1) if layout == "chw" else pixels).tobytes()


def _listed(listed: Path) -> Iterator[tuple[Path, int]]:
    """Of val_map.txt: FormatError at a line that is no file and class."""
    for number, line in enumerate(listed.read_text(encoding="utf-8").splitlines(), 1):
        name, _, label = line.strip().rpartition(" ")
        if not line.strip():
            continue
        location = Location(str(listed), number)
        if not name or not label.isdecimal():
            raise FormatError(f"'{line.strip()}' is no file and class", location=location, hint="write: image.jpeg 65")
        path = listed.parent / name.strip()
        if not path.is_file():
            raise InputError(f"there is no image {path}", location=location, hint="remove the line, or bring the file")
        yield path, int(label)


def _in_classes(folder: Path) -> Iterator[tuple[Path, int]]:
    classes = sorted(entry.name for entry in os.scandir(folder) if entry.is_dir())
    for label, name in enumerate(classes):
        for path in sorted((folder / name).iterdir()):
            if path.suffix.lower() in ENDINGS:
                yield path, label
