"""What must hold for any plan: never worse than today, exact where everything can be tried, honest where it is not."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from planning.plan_systems import agree, asked, box, everything

import lanewise
from lanewise.errors import InputError
from lanewise.perf.flow import parse_flows
from lanewise.planning.place import place
from lanewise.planning.positions import apply, movables
from lanewise.planning.question import Choices, Question
from lanewise.planning.score import by_model
from lanewise.planning.search import PlacementSearch, SearchLimits, choose
from lanewise.planning.solver import Pick, SolverModel
from lanewise.planning.work import parse_service
from lanewise.topology.model import Kind

LANES = st.lists(st.sampled_from([4, 8, 16]), min_size=2, max_size=3)


@st.composite
def boxes(draw, most: int = 4):
    lanes = draw(LANES)
    owners = draw(st.lists(st.sampled_from([None, *range(len(lanes))]), min_size=1, max_size=most))
    return lanes, owners


def service(draw, hosts: int, name: str) -> str:
    qps, each = draw(st.integers(10_000, 250_000)), draw(st.sampled_from([20_000, 43_367, 90_000]))
    host = draw(st.sampled_from(["", *(f"on host{n}" for n in range(hosts))]))
    return f"resnet50 {qps} QPS each {each} {host} as {name}"


@st.composite
def questions(draw, most: int = 4):
    lanes, owners = draw(boxes(most))
    names = ["shop", "search"][: draw(st.integers(1, 2))]
    return asked(box(lanes, owners), *(service(draw, len(lanes), name) for name in names))


@settings(max_examples=25, deadline=None)
@given(questions(most=3))
def test_the_search_finds_what_trying_everything_finds(question):
    agree(question)


@settings(max_examples=25, deadline=None)
@given(questions())
def test_the_best_is_never_worse_than_today_and_moves_nothing_for_nothing(question):
    found = place(question)
    if found.current is not None:
        # Goals count in order: a later one may fall only where an earlier one rises.
        assert found.best.score.goals >= tuple(goal * (1 - 1e-3) - 1e-9 for goal in found.current.score.goals)
        if found.best.score.goals == found.current.score.goals:
            assert not found.best.moves
    for line in found.best.score.lines:
        assert line.rate <= (line.demand or 0) * (1 + 1e-6)


@settings(max_examples=15, deadline=None)
@given(boxes(most=3), st.integers(20_000, 300_000))
def test_a_free_gpu_more_never_lowers_the_best(system, qps):
    lanes, owners = system
    text = f"resnet50 {qps} QPS each 43367"
    fewer, more = (place(asked(box(lanes, who), text)) for who in (owners, [*owners, None]))
    assert more.best.score.goals[0] >= fewer.best.score.goals[0] * (1 - 1e-3)


@settings(max_examples=20, deadline=None)
@given(questions(most=3), st.data())
def test_the_solver_promises_no_less_than_the_model_finds(question, data):
    choices = Choices(question)
    pick = tuple(data.draw(st.integers(0, len(item.options) - 1)) for item in choices.problem.items)
    score = by_model(apply(question.system, choices.moves(pick))[0], choices.work(pick))
    proposal = SolverModel(choices.problem).best("worst", [])
    assert proposal is not None
    assert proposal.bound >= score.goals[0] * (1 - 1e-9)
    proposal = SolverModel(choices.problem).best("total", [])
    assert proposal is not None
    # Rates are whole steps of 1 / 20,000: what shares a full resource may lose most of a step each.
    assert proposal.bound >= score.goals[1] * (1 - 1e-4)


@pytest.mark.parametrize("by", ["slowest", "total"])
@pytest.mark.parametrize(
    "flows",
    ["host->gpu[0-3]", "gpu0->gpu2, gpu1->gpu3", "gpu0->gpu1, host->gpu2 x2", "host->gpu0 cap 5 GB/s, gpu1->host"],
)
def test_flows_are_placed_as_trying_everything_places_them(flows, by):
    system = box([16, 8], [0, 0, 0, 0])
    names = [f"gpu{i}" for i in range(4)]
    parsed = parse_flows(flows)
    if any(flow.src != "host" and flow.dst != "host" for flow in parsed):
        names = names[:3]
    agree(Question(system, movables(system, names, None), flows=parsed, by=by))


def test_flows_beside_a_service_take_their_share_and_are_not_what_is_ranked():
    system = box([16, 16], [0, 0, 0, None])
    flows = parse_flows("host->gpu0 cap 10 GB/s")
    tenants = (parse_service("resnet50 130000 QPS each 43367"),)
    movable = movables(system, [f"gpu{i}" for i in range(4)], None)
    found = agree(Question(system, movable, tenants, flows))
    assert found.served
    assert any(line.name == "host->gpu0" and line.demand is None for line in found.best.score.lines)


def test_drives_move_as_gpus_do():
    system = lanewise.load_system("pax-storage-fabric")
    drives = system.of_kind(Kind.SSD)[:2]
    switches = system.of_kind(Kind.SWITCH)
    flows = parse_flows(", ".join(f"{drive}->host" for drive in drives))
    found = agree(Question(system, movables(system, drives, None, switches), flows=flows))
    assert found.current is not None
    assert found.best.score.total >= found.current.score.total


def test_a_plan_is_the_same_each_time():
    tenants = ("resnet50 150000 each 43367 as a", "resnet50 40000 each 30000 as b")
    question = asked(box([16, 8, 4], [0, 0, 0, None, None]), *tenants)
    first, second = place(question), place(question)
    assert first.best.moves == second.best.moves
    assert first.best.serving == second.best.serving
    assert first.judged == second.judged


def test_where_candidates_run_out_the_plan_says_so():
    tenants = ("resnet50 150000 each 43367 as a", "resnet50 40000 each 30000 as b")
    question = asked(box([16, 8, 4], [0, 0, 0, None, None]), *tenants)
    assert place(question).doubt == ""
    found = place(question, limits=SearchLimits(candidates=1))
    assert found.doubt == "stopped after 1 candidate"
    assert found.best.score.goals[0] > 0


def test_ctrl_c_keeps_the_best_found():
    question = asked(box([16, 8, 4], [0] * 4), "resnet50 310000 each 43367")
    choices = Choices(question)
    judged: list[Pick] = []

    def judge(pick):
        if judged:
            raise KeyboardInterrupt
        judged.append(pick)
        return by_model(apply(question.system, choices.moves(pick))[0], choices.work(pick))

    found = PlacementSearch(choices.problem, judge, SearchLimits()).best()
    assert found.interrupted
    assert found.pick == judged[0]
    assert found.doubt == "interrupted"


def test_another_evaluator_decides():
    def only_host1(system, work):
        score = by_model(system, work)
        away = sum(system.device(name).host != "host1" for serving in work.services for name in serving.gpus)
        return type(score)((-float(away), 0.0), score.lines, "a wish", 1, score.busiest)

    found = place(asked(box([16, 16], [0, 0]), "resnet50 30000 each 43367"), only_host1)
    assert {found.best.system.device(gpu).host for gpu in found.best.serving["resnet50"]} <= {"host1"}


def test_nothing_to_move_is_an_error():
    system = box([16], [0, 0])
    with pytest.raises(InputError, match="can move to another host"):
        place(Question(system, movables(system, [], None), flows=parse_flows("host->gpu0")))


def test_equal_placements_are_as_good_as_the_best_for_as_many_moves():
    # A free GPU, two hosts with cables of one width: which host gets the GPU makes no difference.
    question = asked(box([16, 16], [None]), "resnet50 30000 each 43367")
    found = place(question)
    (other,) = found.equal
    assert found.best.moves != other.moves
    assert {move.to.host for candidate in (found.best, other) for move in candidate.moves} == {"host0", "host1"}
    choices, scores = everything(question)
    pick = choose(choices.problem, scores, 1e-4)
    assert pick is not None
    best = scores[pick]
    assert best is not None
    assert other.score.goals == found.best.score.goals == best.goals
    assert not place(asked(box([16, 4], [None]), "resnet50 250000 each 250000")).equal
