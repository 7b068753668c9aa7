import enum
from collections.abc import Callable

from lanewise._native import SystemUnderTest

VERSION: str

class Mode(enum.Enum):
    PERFORMANCE = ...
    ACCURACY = ...
    FIND_PEAK = ...

class Settings:
    scenario: str
    mode: Mode
    qps: float
    bound: float
    percentile: float
    seconds: float
    queries: int
    samples: int
    seed: int
    coalesce: bool
    sample_count: int
    performance_sample_count: int
    folder: str
    configs: list[str]
    model: str
    audit: str
    end_hopeless: bool
    direct: bool

class LoadGenRun:
    @property
    def issued(self) -> int: ...
    @property
    def answered(self) -> int: ...
    @property
    def late(self) -> int: ...
    @property
    def seconds(self) -> float: ...
    @property
    def still(self) -> float: ...
    @property
    def hopeless(self) -> bool: ...
    @property
    def lag(self) -> dict[str, float]: ...
    @property
    def latency(self) -> dict[str, float]: ...

def run_load(
    system: SystemUnderTest, settings: Settings, tick: Callable[[int, int, int], object] | None = None
) -> LoadGenRun: ...
