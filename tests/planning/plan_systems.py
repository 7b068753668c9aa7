"""Small systems to plan on, and the placement that trying everything finds."""

from __future__ import annotations

from itertools import product

import lanewise
from lanewise.errors import LanewiseError
from lanewise.planning.place import Placement, place
from lanewise.planning.positions import apply, default_devices, movables
from lanewise.planning.question import Choices, Question
from lanewise.planning.score import Score, by_model
from lanewise.planning.search import SearchLimits, choose
from lanewise.planning.solver import Pick
from lanewise.planning.work import parse_service
from lanewise.topology.model import System
from lanewise.topology.read import read_system

# One box of GPUs that up to three servers can hold, each over a cable of its own width.
TEXT = """\
lanewise: 1
system: box
hosts: [HOSTS]
devices:
CPUS
  box: {switch: cdi-gen4-fabric-switch}
GPUS
links:
CABLES
  - {from: box, to: "gpu[0-LAST]", pcie: gen4 x16}
"""


def box(lanes: list[int], owners: list[int | None]) -> System:
    """A box with a GPU for each of `owners` (the host's number, None: free), a cable of `lanes` for each host."""
    hosts = [f"host{n}" for n in range(len(lanes))]
    cpus = [f"  cpu{n}: {{cpu: xeon-gold-6454s, host: {host}}}" for n, host in enumerate(hosts)]
    cpus += [f"  hba{n}: {{adapter: cdi-gen4-host-adapter, host: {host}}}" for n, host in enumerate(hosts)]
    gpus = [f"  gpu{i}: {{gpu: l40s, host: {'null' if n is None else hosts[n]}}}" for i, n in enumerate(owners)]
    cables = [f"  - {{from: cpu{n}, to: hba{n}, pcie: gen4 x{width}}}" for n, width in enumerate(lanes)]
    cables += [f"  - {{from: hba{n}, to: box, fabric: gen4 x{width}}}" for n, width in enumerate(lanes)]
    text = TEXT.replace("HOSTS", ", ".join(hosts)).replace("LAST", str(len(owners) - 1))
    for word, lines in (("CPUS", cpus), ("GPUS", gpus), ("CABLES", cables)):
        text = text.replace(word, "\n".join(lines))
    return read_system(text, "box.yaml")


def asked(system: System, *services: str) -> Question:
    """Services on a system whose GPUs may all move."""
    return Question(system, movables(system, default_devices(system), None), tuple(map(parse_service, services)))


def everything(question: Question) -> tuple[Choices, dict[Pick, Score | None]]:
    """Every placement of a question with its score."""
    choices = Choices(question)
    scores: dict[Pick, Score | None] = {}
    for pick in product(*(range(len(item.options)) for item in choices.problem.items)):
        try:
            system = apply(question.system, choices.moves(pick))[0]
            scores[pick] = by_model(system, choices.work(pick))
        except LanewiseError:
            scores[pick] = None
    return choices, scores


def agree(question: Question) -> Placement:
    """The placement that the search finds, after a comparison with trying everything."""
    limits = SearchLimits(candidates=2_000)
    found = place(question, limits=limits)
    limits = limits.of_demand() if question.tenants else limits
    choices, scores = everything(question)
    best = choose(choices.problem, scores, limits.tolerance)
    assert best is not None
    score = scores[best]
    assert score is not None
    assert not found.doubt
    for mine, best_possible in zip(found.best.score.goals, score.goals, strict=True):
        assert mine >= best_possible * (1 - 2.1 * limits.tolerance) - 1e-9
    if found.best.score.goals == score.goals:
        assert (len(found.best.moves), found.best.used) == choices.problem.cost(best)
    return found


def two_paths(path: int, gpus: int = 4) -> System:
    """The two composable servers of the PRIMERGY CDI white paper on one path length, all GPUs at the first."""
    return lanewise.load_system("composable-server-path4-two-hosts", {"path": path, "gpus": gpus, "bound": gpus})
