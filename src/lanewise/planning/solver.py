"""A planning question as plain choices, and its CP-SAT model: a bound for every placement not judged yet.

Items choose one option each, and flows exist under some choices.

Flows share by max-min, which is not linear. Here they may share a full resource in any way, so the model never gives a
placement less than it has: its best value is an upper bound of what is left to find. Rounding goes the same way (what
a flow takes is rounded down, what it may reach is rounded up), but for flows that share a full resource: in whole steps
they may lose most of a step each, so a sum's bound may be below the truth by under 0.01 %.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from lanewise.errors import import_extra

STEPS = 20_000  # the largest rate of a group in whole steps
FULL = 10**11  # a full resource in whole parts
FINE = 1_000_000  # parts of what one step of a group is worth
STEEPEST = 2**40  # times STEPS far below the solver's largest number
LEAST = -(2**60)  # below the value of any goal
EFFORT = 1.0  # CP-SAT's own measure of effort for one answer: the same on every machine, about seconds

Pick = tuple[int, ...]
"""The option that each item takes, by index."""


@dataclass(frozen=True, slots=True)
class ItemOption:
    """One thing an item may do, with its cost: devices moved, devices in use, rank of the class (0: nearest)."""

    name: str
    moves: int = 0
    used: int = 0
    distance: int = 0


@dataclass(frozen=True, slots=True)
class Item:
    """A device with the options that it may take."""

    name: str
    options: tuple[ItemOption, ...]


@dataclass(frozen=True, slots=True)
class FlowGroup:
    """Flows counted together against a `demand` in B/s; `bounded` if more than that is never used.

    A group that is not `counted` takes its share of resources, but no goal asks for it.
    """

    name: str
    demand: float
    bounded: bool
    counted: bool = True


@dataclass(frozen=True, slots=True)
class FlowVariant:
    """One flow of a group as it runs under the choices `when` ((item, option) pairs, all of them).

    `uses` gives for each resource the part of it that 1 B/s takes; `cap` is the flow's own ceiling in B/s.
    """

    group: int
    when: tuple[tuple[int, int], ...]
    uses: tuple[tuple[tuple[str, ...], float], ...]
    cap: float


@dataclass(frozen=True, slots=True)
class PortCapacity:
    """A port with a limit (lanes, or cables); each (item, option) in `takes` needs that amount of it."""

    name: str
    takes: tuple[tuple[int, int, int], ...]
    limit: int


@dataclass(frozen=True, slots=True)
class Problem:
    """Items, flows and goals in order of weight: 'worst' and 'total' share of what groups want, 'near' classes.

    `alike` are neighbours of which the later may always take the later option. `sound` says that no placement can
    get more than the variants state, so that the solver's bound is a proof.
    """

    items: tuple[Item, ...]
    groups: tuple[FlowGroup, ...]
    variants: tuple[FlowVariant, ...]
    goals: tuple[str, ...]
    rooms: tuple[PortCapacity, ...] = ()
    alike: tuple[tuple[int, int], ...] = ()
    sound: bool = True

    def chosen(self, pick: Pick) -> tuple[ItemOption, ...]:
        """The options of a pick."""
        return tuple(item.options[index] for item, index in zip(self.items, pick, strict=True))

    def moves(self, pick: Pick) -> int:
        """How many devices a pick moves."""
        return sum(option.moves for option in self.chosen(pick))

    def cost(self, pick: Pick) -> tuple[int, int]:
        """How many devices a pick moves, and how many it uses."""
        return self.moves(pick), sum(option.used for option in self.chosen(pick))


@dataclass(frozen=True, slots=True)
class Proposal:
    """A placement not judged yet, and the bound of all such placements in one goal."""

    pick: Pick
    bound: float


class Exhausted(Exception):
    """The solver gave up before it had an answer."""


class SolverModel:
    """The model of one problem; `forbid` removes a judged placement."""

    def __init__(self, problem: Problem, most_moves: int | None = None) -> None:
        self.problem = problem
        self._cp = _cp_model()
        self._model = self._cp.CpModel()
        self._takes = [
            [self._model.new_bool_var(f"{item.name}:{option.name}") for option in item.options]
            for item in problem.items
        ]
        for takes in self._takes:
            self._model.add_exactly_one(takes)
        self._bundles = bundles(problem)
        self._rates, self._steps = self._flows()
        self._goals = {name: self._goal(name) for name in problem.goals}
        self._cost, self._weight = self._costs(most_moves)
        self._order()
        for room in problem.rooms:
            self._model.add(sum(self._takes[i][j] * amount for i, j, amount in room.takes) <= room.limit)

    def forbid(self, pick: Pick) -> None:
        """Never propose this placement again."""
        self._model.add(sum(self._takes[i][j] for i, j in enumerate(pick)) <= len(pick) - 1)

    def best(self, goal: str, floors: Sequence[tuple[str, float]]) -> Proposal | None:
        """The unseen placement with the largest bound of `goal`, the others at least at their floors; None: no more."""
        value, scale = self._goals[goal]
        solver = self._solve(self._model.clone(), value, floors, maximise=True)
        return None if solver is None else Proposal(self._pick(solver), solver.best_objective_bound / scale)

    def cheapest(self, floors: Sequence[tuple[str, float]], below: tuple[int, int] | None) -> Pick | None:
        """The unseen placement with fewest (moves, devices used) under `below` whose bounds reach the floors."""
        model = self._model.clone()
        if below is not None:
            model.add(self._cost <= below[0] * self._weight + below[1] - 1)
        solver = self._solve(model, self._cost, floors, maximise=False)
        return None if solver is None else self._pick(solver)

    def _solve(self, model: Any, objective: Any, floors: Sequence[tuple[str, float]], maximise: bool) -> Any:
        for name, least in floors:
            value, scale = self._goals[name]
            model.add(value >= max(math.floor(least * scale), LEAST))
        (model.maximize if maximise else model.minimize)(objective)
        solver = self._cp.CpSolver()
        settings = solver.parameters
        # One worker, a fixed seed and a limit in effort, not seconds: the same plan on every machine.
        settings.num_workers, settings.random_seed = 1, 1
        settings.max_deterministic_time = EFFORT
        settings.catch_sigint_signal = False
        status = solver.solve(model)
        if status == self._cp.INFEASIBLE:
            return None
        if status not in (self._cp.OPTIMAL, self._cp.FEASIBLE):
            raise Exhausted
        return solver

    def _pick(self, solver: Any) -> Pick:
        return tuple(next(j for j, var in enumerate(takes) if solver.boolean_value(var)) for takes in self._takes)

    def _flows(self) -> tuple[list[Any], list[float]]:
        """A whole-numbered rate for each stream, in steps of its group, under all resources and demands."""
        problem, model = self.problem, self._model
        largest = [0.0] * len(problem.groups)
        for bundle in self._bundles:
            group = problem.groups[bundle.group]
            cap = min(bundle.cap, group.demand) if group.bounded else bundle.cap
            largest[bundle.group] = max(largest[bundle.group], cap)
        steps = [value / STEPS or 1.0 for value in largest]
        rates: list[Any] = []
        most = [0] * len(problem.groups)
        loads: dict[tuple[str, ...], list[Any]] = {}
        demands: list[list[Any]] = [[] for _ in problem.groups]
        for number, bundle in enumerate(self._bundles):
            demand = problem.groups[bundle.group].demand if problem.groups[bundle.group].bounded else math.inf
            top = math.ceil(min(bundle.cap, demand) / steps[bundle.group])
            rate = model.new_int_var(0, top * len(bundle.whens), f"rate{number}")
            most[bundle.group] += top * len(bundle.whens)
            if len(bundle.whens) == 1:
                for item, option in bundle.whens[0]:
                    model.add(rate <= top * self._takes[item][option])
            else:
                model.add(rate <= sum(top * self._takes[item][option] for ((item, option),) in bundle.whens))
            for key, part in bundle.uses:
                loads.setdefault(key, []).append(rate * math.floor(part * steps[bundle.group] * FULL))
            demands[bundle.group].append(rate)
            rates.append(rate)
        for terms in loads.values():
            model.add(sum(terms) <= FULL)
        for group, mine, step, top in zip(problem.groups, demands, steps, most, strict=True):
            if group.bounded and mine:  # more than all could do together need not fit the solver's whole numbers
                model.add(sum(mine) <= math.ceil(min(group.demand / step, top)))
        return rates, steps

    def _goal(self, name: str) -> tuple[Any, float]:
        """A goal as (whole-numbered expression, its value divided by this is the goal)."""
        problem = self.problem
        if name == "near":
            return sum(
                -option.distance * var
                for item, takes in zip(problem.items, self._takes, strict=True)
                for option, var in zip(item.options, takes, strict=True)
            ), 1.0
        # Shares of what is wanted: one step of a group is worth step / wanted.
        worth = [step / group.demand for step, group in zip(self._steps, problem.groups, strict=True)]
        if name == "total":
            counted = [
                (rate, worth[each.group])
                for rate, each in zip(self._rates, self._bundles, strict=True)
                if problem.groups[each.group].counted
            ]
            scale = FINE / max((each for _, each in counted), default=1.0)
            return sum(rate * math.ceil(each * scale) for rate, each in counted), scale
        return self._worst(worth)

    def _worst(self, worth: Sequence[float]) -> tuple[Any, float]:
        """The least share of any group."""
        groups = self.problem.groups
        tops = {number: 0.0 for number, group in enumerate(groups) if group.counted}
        for variant in self.problem.variants:
            if variant.group in tops:
                tops[variant.group] += variant.cap / groups[variant.group].demand
        top = min(tops.values(), default=1.0)
        if all(groups[number].bounded for number in tops):
            top = min(top, 1.0)
        scale = STEPS / max(top, 1e-9)
        least = self._model.new_int_var(0, STEPS, "worst")
        for number in tops:
            mine = [r for r, v in zip(self._rates, self._bundles, strict=True) if v.group == number]
            # (least - 1) / scale <= sum of rates * worth: a whole number more, so that nothing is promised too little.
            # A demand far beyond all rates would need larger numbers than the solver has: less steep promises more.
            steep = math.floor(min(FINE / (scale * worth[number]), STEEPEST))
            self._model.add((least - 1) * steep <= sum(mine) * FINE)
        return least, scale

    def _costs(self, most_moves: int | None) -> tuple[Any, int]:
        pairs = [
            (option, var)
            for item, takes in zip(self.problem.items, self._takes, strict=True)
            for option, var in zip(item.options, takes, strict=True)
        ]
        moves = sum(option.moves * var for option, var in pairs)
        if most_moves is not None:
            self._model.add(moves <= most_moves)
        weight = len(self.problem.items) + 1
        return moves * weight + sum(option.used * var for option, var in pairs), weight

    def _order(self) -> None:
        """Of devices that are alike, the later one takes the later option."""
        for first, second in self.problem.alike:
            places = [sum(j * var for j, var in enumerate(self._takes[i])) for i in (first, second)]
            self._model.add(places[0] <= places[1])


def _cp_model() -> Any:
    return import_extra("ortools.sat.python.cp_model", "plan", "planning needs OR-tools")


@dataclass(frozen=True, slots=True)
class FlowBundle:
    """Variants of one group that differ in the device only, as one: each adds up to `cap` B/s where it is chosen."""

    group: int
    whens: tuple[tuple[tuple[int, int], ...], ...]
    uses: tuple[tuple[tuple[str, ...], float], ...]
    cap: float


def bundles(problem: Problem) -> list[FlowBundle]:
    """The variants, those of identical devices taken together.

    What only one device or one flow ever uses is left out: it bounds that flow alone, and its cap says so already.
    """
    owners: dict[tuple[str, ...], set[tuple[bool, int]]] = {}
    for variant in problem.variants:
        bounded = problem.groups[variant.group].bounded
        # A device serves one tenant at a time, and a plain flow runs in one way at a time.
        owner = (bounded, variant.when[0][0] if bounded else variant.group)
        for key, _ in variant.uses:
            owners.setdefault(key, set()).add(owner)
    merged: dict[object, FlowBundle] = {}
    for variant in problem.variants:
        uses = tuple((key, part) for key, part in variant.uses if len(owners[key]) > 1)
        # Only variants with one choice add up: of those with two, one flow takes a single one.
        sign = (variant.group, uses, variant.cap, len(merged) if len(variant.when) != 1 else None)
        before = merged.get(sign)
        whens = (variant.when,) if before is None else (*before.whens, variant.when)
        merged[sign] = FlowBundle(variant.group, whens, uses, variant.cap)
    return list(merged.values())
