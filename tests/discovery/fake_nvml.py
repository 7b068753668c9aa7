"""An object with the functions of pynvml that discovery calls: GPUs with NVLinks through switches, or to each other."""

from __future__ import annotations

from types import SimpleNamespace

ABSENT = "0000FFFF:FF:1F.0"


class NVMLError(Exception):
    """What the library raises for what it cannot say."""


class FakeNvml:
    """Two GPUs of an H200 kind: `links` NVLinks up (through a switch, or straight to the other) and one down."""

    NVMLError = NVMLError

    def __init__(self, links=18, switch=True, peers=0, gen=5, silent=()):
        self.links, self.switch, self.peer_code, self.silent = links, switch, peers, silent
        self.addresses = ("00000000:0A:00.0", "00000000:0B:00.0")
        self.gen, self.open = gen, 0

    def __getattribute__(self, name):
        if name in object.__getattribute__(self, "silent"):
            raise_ = NVMLError(f"{name} not supported")

            def refuse(*_):
                raise raise_

            return refuse
        return object.__getattribute__(self, name)

    def nvmlInit(self):  # noqa: N802
        self.open += 1

    def nvmlShutdown(self):  # noqa: N802
        self.open -= 1

    def nvmlDeviceGetCount(self):  # noqa: N802
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):  # noqa: N802
        return index

    def nvmlDeviceGetPciInfo(self, handle):  # noqa: N802
        return SimpleNamespace(busId=self.addresses[handle].encode())

    def nvmlSystemGetDriverVersion(self):  # noqa: N802
        return "570.86.15"

    def nvmlDeviceGetName(self, handle):  # noqa: N802
        return "NVIDIA H200"

    def nvmlDeviceGetMaxPcieLinkGeneration(self, handle):  # noqa: N802
        return self.gen

    nvmlDeviceGetCurrPcieLinkGeneration = nvmlDeviceGetMaxPcieLinkGeneration  # noqa: N815

    def nvmlDeviceGetMaxPcieLinkWidth(self, handle):  # noqa: N802
        return 16

    nvmlDeviceGetCurrPcieLinkWidth = nvmlDeviceGetMaxPcieLinkWidth  # noqa: N815

    def nvmlDeviceGetCurrentClocksThrottleReasons(self, handle):  # noqa: N802
        return 0x1 | 0x40

    def nvmlDeviceGetUtilizationRates(self, handle):  # noqa: N802
        return SimpleNamespace(gpu=3, memory=1)

    def nvmlDeviceGetNvLinkState(self, handle, link):  # noqa: N802
        if link > self.links:
            raise NVMLError("Invalid Argument")
        return int(link < self.links)

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle, link):  # noqa: N802
        return SimpleNamespace(busId=(ABSENT if self.switch else self.addresses[1 - handle]).encode())

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle, link):  # noqa: N802
        return 2 if self.switch else 0

    def nvmlDeviceGetNvLinkVersion(self, handle, link):  # noqa: N802
        return 7

    def nvmlDeviceGetP2PStatus(self, one, other, index):  # noqa: N802
        return self.peer_code
