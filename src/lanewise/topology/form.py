"""The description format as pydantic models: the one source of validation and of the JSON Schema."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, StrictBool, StrictFloat, StrictInt, StrictStr
from pydantic.config import JsonDict

from lanewise.topology.words import MEDIA, PEER_SCOPES, SHAPES, WORDS

Whole = Annotated[StrictInt | StrictStr, Field(union_mode="left_to_right")]
Quantity = StrictInt | StrictFloat | StrictStr
Names = StrictStr | list[StrictStr]


class Form(BaseModel):
    """Base of all: unknown keys are errors."""

    model_config = ConfigDict(extra="forbid", frozen=True, populate_by_name=True)


def _one_of(names: Iterable[str]) -> JsonDict:
    return {"oneOf": [{"required": [name.removesuffix("_")]} for name in names]}


class ParameterForm(Form):
    """A number that a study may sweep."""

    default: StrictInt = Field(description="the value used when none is set")
    values: list[StrictInt] = Field([], description="the allowed values; leave out for any from min to max")
    min: StrictInt = Field(0, description="smallest allowed value")
    max: StrictInt = Field(4096, description="largest allowed value")
    help: StrictStr = Field("", description="one line about it")


class DeviceForm(Form):
    """One device, or one for each name of a range."""

    model_config = ConfigDict(json_schema_extra=_one_of(WORDS))

    cpu: StrictStr | None = Field(None, description="a CPU socket; its part, or null if unknown")
    gpu: StrictStr | None = Field(None, description="a GPU; its part, or null if unknown")
    switch: StrictStr | None = Field(None, description="a PCIe switch; its part, or null if unknown")
    adapter: StrictStr | None = Field(None, description="a PCIe host adapter that forwards like a switch")
    nvswitch: StrictStr | None = Field(None, description="an NVSwitch, or all of a machine as one")
    nic: StrictStr | None = Field(None, description="a network card; its part, or null if unknown")
    ssd: StrictStr | None = Field(None, description="a drive; its part, or null if unknown")
    raid: StrictStr | None = Field(None, description="a RAID controller; its part, or null if unknown")
    netswitch: StrictStr | None = Field(None, description="a network switch; its part, or null if unknown")
    host: StrictStr | None = Field(None, description="the host it is bound to; null says unbound")
    numa: Whole | None = Field(None, description="the NUMA node within the host; '+0' counts up over a range")
    numa_nodes: Whole | None = Field(None, description="NUMA nodes of a CPU socket: 4 for NPS4, 2 for SNC2")
    shared: StrictBool = Field(False, description="of a CPU: other tenants use its socket too")
    power_limit: Quantity | None = Field(None, description="power that a GPU is set to, such as '225 W'")
    partitions: list[Names] = Field([], description="groups of neighbours that a switch joins")
    os_names: list[StrictStr] = Field([], description="its names in the operating system: 0000:3b:00.0, mlx5_0, eth0")
    when: StrictStr | None = Field(None, description="a condition such as 'path >= 3'")


class LinkForm(Form):
    """One link, or several of one kind."""

    model_config = ConfigDict(
        json_schema_extra={
            "allOf": [_one_of(SHAPES), _one_of(MEDIA)],
            "dependentRequired": {"from": ["to"], "to": ["from"], "pairs": ["from"]},
        }
    )

    chain: list[StrictStr] | None = Field(None, description="devices joined neighbour to neighbour")
    from_: Names | None = Field(None, alias="from", description="the ends above; each is joined to every `to`")
    to: Names | None = Field(None, description="the ends below")
    pairs: StrictBool = Field(False, description="join first to first, second to second, and so on")
    mesh: Names | None = Field(None, description="devices joined all to all")
    pcie: StrictStr | None = Field(None, description="PCIe speed: 'gen4 x16', 'gen4', 'x8' or 'auto'")
    fabric: StrictStr | None = Field(None, description="the same, for a fabric link between two switches")
    socket: Whole | None = Field(None, description="number of UPI, QPI or xGMI links between CPUs, 'auto', '?'")
    nvlink: Whole | None = Field(None, description="number of bonded NVLinks, or 'auto'")
    network: StrictStr | None = Field(None, description="edr, hdr, 100gbe, ..., a rate such as '100 Gb/s', 'auto'")
    rate: Quantity | None = Field(None, description="raw rate of one direction, of all bonded links, such as '25 GB/s'")
    port: StrictStr | None = Field(None, description="name of the root port at the CPU")
    bridge: StrictStr | None = Field(None, description="name of the host bridge (root complex) at the CPU")
    max_payload: Quantity | None = Field(None, description="max payload size in use, such as '256 B'")
    length: Quantity | None = Field(None, description="length of the cable, such as '2 m'")
    when: StrictStr | None = Field(None, description="a condition such as 'path >= 3'")


class DomainForm(Form):
    """A virtual PCIe domain."""

    root: StrictStr = Field(description="the CPU whose root port sees it")
    devices: Names = Field(description="its endpoints; [] while it has none")


class VolumeForm(Form):
    """A logical volume over drives."""

    raid: Literal[0, 5, 10] = Field(description="the RAID level: 0, 5 or 10")
    drives: Names = Field(description="the SSDs it lies on")
    controller: StrictStr | None = Field(None, description="the RAID controller; leave out for software RAID")
    chunk: Quantity | None = Field(None, description="stripe unit, such as '64 KiB'")


class PoliciesForm(Form):
    """What is allowed."""

    peers: StrictStr | dict[str, StrictStr] = Field(
        default={}, description=f"peer traffic through a CPU: one of {', '.join(PEER_SCOPES)}; for all, or by CPU"
    )
    acs_redirect: StrictBool | Names = Field(
        False, description="switches and CPUs whose ACS sends peer traffic up; true, or '{parameter}', for all switches"
    )
    iommu: Literal["off", "passthrough", "translate", False] | None = Field(
        None, description="the IOMMU mode: off, passthrough or translate; leave it out if nobody knows it"
    )
    staging: Names = Field([], description="the CPU of each host in whose memory copies between GPUs are staged")
    cross_domain_p2p: StrictBool | Whole = Field(False, description="peers across virtual domains in the fabric")


class SystemForm(Form):
    """A system description, format version 1."""

    lanewise: Literal[1] = Field(description="version of this format")
    system: StrictStr = Field(description="name of the system", min_length=1)
    title: StrictStr = Field("", description="what it is, for people")
    source: StrictStr = Field("", description="where the facts come from")
    parameters: dict[str, ParameterForm] = Field({}, description="numbers a study may sweep, used as {name}")
    settings: dict[str, StrictInt] = Field({}, description="parameters fixed when this text was written out")
    parts: Names = Field([], description="a part file of its own, or several; paths start at this file's folder")
    hosts: list[StrictStr] = Field([], description="hosts; one named host0 if left out", min_length=1)
    devices: dict[str, DeviceForm] = Field(description="name or range: what it is")
    links: list[LinkForm] = Field([], description="what joins them")
    domains: dict[str, DomainForm] = Field({}, description="virtual PCIe domains of a fabric")
    volumes: dict[str, VolumeForm] = Field({}, description="logical volumes over drives")
    policies: PoliciesForm = Field(PoliciesForm.model_construct(), description="what is allowed")
    assumptions: list[StrictStr] = Field([], description="what is assumed, not published")


def json_schema() -> dict[str, Any]:
    """The schema of a system description, draft 2020-12, generated from the models that validate it."""
    schema = SystemForm.model_json_schema(by_alias=True)
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Lanewise system description"
    return schema
