"""What streams hide of the fixed time of a batch, and what copies of queries within a GPU or from the host cost it.

    python3 benchmarks/gpu_streams.py

Needs a GPU with PyTorch and CuPy, nothing of Lanewise. A network with the layers of ResNet-50 runs as CUDA graphs on
several streams, as MLPerf's LWIS does; prints T(1), then queries/s for image sizes, batches and streams, without
copies, with a call for each query within the GPU's memory, and from the host's. Results of an H200:
benchmarks/runs/2026-11-26-streams.md, from a shorter script with the same steps, and of this file as it stands:
benchmarks/runs/2026-11-27-two-gpus/h200/streams.txt.
"""

from __future__ import annotations

import random
import statistics
import time

import torch
from cupy.cuda import runtime
from torch import nn

QUERY, QUERIES = 150_528, 2048  # bytes, and how many lie in memory
UNDER_WAY, WARM, SECONDS = 4, 30, 1.0
DEVICE_TO_DEVICE, HOST_TO_DEVICE = 3, 1  # cudaMemcpyKind
SOURCES = ("none", "gpu", "host")


class Bottleneck(nn.Module):  # type: ignore[misc]  # PyTorch is no dependency of the checks
    """A residual block of three convolutions."""

    def __init__(self, before: int, width: int, stride: int) -> None:
        super().__init__()
        after = 4 * width
        self.path = nn.Sequential(
            nn.Conv2d(before, width, 1), nn.ReLU(), nn.Conv2d(width, width, 3, stride, 1), nn.ReLU(),
            nn.Conv2d(width, after, 1),
        )  # fmt: skip
        self.rest = nn.Conv2d(before, after, 1, stride) if before != after else nn.Identity()

    def forward(self, images: torch.Tensor) -> torch.Tensor:
        return torch.relu(self.path(images) + self.rest(images))


def network() -> nn.Module:
    layers: list[nn.Module] = [nn.Conv2d(3, 64, 7, 2, 3), nn.MaxPool2d(3, 2, 1)]
    before = 64
    for width, count, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for index in range(count):
            layers.append(Bottleneck(before, width, stride if index == 0 else 1))
            before = 4 * width
    return nn.Sequential(*layers).cuda().half().eval().to(memory_format=torch.channels_last)


class Slot:
    """A batch under way: its CUDA graph, where its queries go, the stream of its copies, when it was copied and ran."""

    def __init__(self, net: nn.Module, batch: int, pixels: int) -> None:
        with torch.no_grad():
            images = torch.randn(batch, 3, pixels, pixels, device="cuda").half()
            self.images = images.to(memory_format=torch.channels_last)
            net(self.images)
            torch.cuda.synchronize()
            self.graph = torch.cuda.CUDAGraph()
            with torch.cuda.graph(self.graph):
                self.answers = net(self.images)
        self.queries = torch.empty(batch * QUERY, dtype=torch.uint8, device="cuda")
        self.copies = torch.cuda.Stream()
        self.copied, self.ran = torch.cuda.Event(), torch.cuda.Event()


def rate(net: nn.Module, stored: dict[str, torch.Tensor], batch: int, streams: int, source: str, pixels: int) -> float:
    """Queries/s with batches of that size on so many streams, whose queries come from there."""
    slots = [Slot(net, batch, pixels) for _ in range(UNDER_WAY)]
    lanes = [torch.cuda.Stream() for _ in range(streams)]
    began, count = 0.0, 0
    while not began or time.perf_counter() - began < SECONDS:
        slot, lane = slots[count % UNDER_WAY], lanes[count % streams]
        slot.ran.synchronize()
        if source != "none":
            kind = HOST_TO_DEVICE if source == "host" else DEVICE_TO_DEVICE
            for place in range(batch):
                query = stored[source].data_ptr() + random.randrange(QUERIES) * QUERY
                target = slot.queries.data_ptr() + place * QUERY
                runtime.memcpyAsync(target, query, QUERY, kind, slot.copies.cuda_stream)
        slot.copied.record(slot.copies)
        lane.wait_event(slot.copied)
        with torch.cuda.stream(lane):
            slot.graph.replay()
        slot.ran.record(lane)
        count += 1
        if count == WARM:
            torch.cuda.synchronize()
            began = time.perf_counter()
    torch.cuda.synchronize()
    return (count - WARM) * batch / (time.perf_counter() - began)


def lone(net: nn.Module, pixels: int) -> float:
    """Seconds of a lone query, seen by the host."""
    slot, times = Slot(net, 1, pixels), []
    for _ in range(3000):
        began = time.perf_counter()
        slot.graph.replay()
        torch.cuda.synchronize()
        times.append(time.perf_counter() - began)
    return statistics.median(times[500:])


def main() -> None:
    torch.backends.cudnn.benchmark = True
    net = network()
    store = torch.zeros(QUERIES * QUERY, dtype=torch.uint8)
    stored = {"gpu": store.cuda(), "host": store.pin_memory()}
    print(torch.cuda.get_device_name())
    for pixels in (64, 96, 160):
        print(f"{pixels} pixels: T(1) {1e3 * lone(net, pixels):.4f} ms")
        for batch in (32, 64, 128, 192, 256, 1024, 2048):
            for streams in (1, 2, 4):
                sources = SOURCES if batch < 1024 else SOURCES[:1]
                rates = {source: round(rate(net, stored, batch, streams, source, pixels)) for source in sources}
                print(pixels, batch, streams, rates, flush=True)


if __name__ == "__main__":
    main()
