"""The part of TensorRT 10's Python interface that the engine calls, over onnxruntime on the CPU: no GPU, but its rules.

A plan is only run at shapes inside its profile, at addresses that were set, by the version that built it.
"""

from __future__ import annotations

import ctypes
from math import prod
from typing import Any

import numpy as np
import onnxruntime

__version__ = "10.13.0"

built: list[tuple[int, ...]] = []  # the largest shape of each plan
streams: list[int] = []  # of each execution
refuse = ""  # what fails: parse, build or execute


class Logger:
    ERROR = 1

    def __init__(self, level: int) -> None:
        self.level = level


class NetworkDefinitionCreationFlag:
    STRONGLY_TYPED = 1


class Profile:
    def set_shape(self, name: str, least: tuple[int, ...], best: tuple[int, ...], most: tuple[int, ...]) -> None:
        assert name == "samples"
        assert least[0] == 1 <= best[0] <= most[0]
        self.most = most


class Config:
    def add_optimization_profile(self, profile: Profile) -> int:
        self.profile = profile
        return 0


class Network:
    content = b""


class Builder:
    def __init__(self, logger: Logger) -> None:
        pass

    def create_network(self, flags: int) -> Network:
        assert flags == 1 << NetworkDefinitionCreationFlag.STRONGLY_TYPED
        return Network()

    def create_builder_config(self) -> Config:
        return Config()

    def create_optimization_profile(self) -> Profile:
        return Profile()

    def build_serialized_network(self, network: Network, config: Config) -> bytes | None:
        if refuse == "build":
            return None
        built.append(config.profile.most)
        return f"{__version__} {config.profile.most[0]} ".encode() + network.content


class ParserError:
    def desc(self) -> str:
        return "no converter for Transpose of UINT8"


class OnnxParser:
    num_errors = 1

    def __init__(self, network: Network, logger: Logger) -> None:
        self.network = network

    def parse(self, content: bytes) -> bool:
        self.network.content = content
        return refuse != "parse"

    def get_error(self, index: int) -> ParserError:
        return ParserError()


class Context:
    def __init__(self, session: Any, most: int) -> None:
        self.session, self.most = session, most
        self.shape: tuple[int, ...] = ()
        self.addresses: dict[str, int] = {}

    def set_input_shape(self, name: str, shape: tuple[int, ...]) -> bool:
        self.shape = shape
        return 1 <= shape[0] <= self.most

    def set_tensor_address(self, name: str, address: int) -> bool:
        self.addresses[name] = address
        return name in ("samples", "scores")

    def execute_async_v3(self, stream: int) -> bool:
        if refuse == "execute":
            return False
        streams.append(stream)
        given = np.ctypeslib.as_array((ctypes.c_uint8 * prod(self.shape)).from_address(self.addresses["samples"]))
        (scores,) = self.session.run(["scores"], {"samples": given.reshape(self.shape)})
        ctypes.memmove(self.addresses["scores"], np.ascontiguousarray(scores, np.float32).ctypes.data, scores.size * 4)
        return True


class Engine:
    def __init__(self, content: bytes, most: int) -> None:
        self.session = onnxruntime.InferenceSession(content, providers=["CPUExecutionProvider"])
        self.most = most

    def create_execution_context(self) -> Context:
        return Context(self.session, self.most)


class Runtime:
    def __init__(self, logger: Logger) -> None:
        pass

    def deserialize_cuda_engine(self, plan: bytes) -> Engine | None:
        version, _, rest = plan.partition(b" ")
        most, _, content = rest.partition(b" ")
        return Engine(content, int(most)) if version == __version__.encode() else None
