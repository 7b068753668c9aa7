"""What a prepared drawing promises: boxes apart, children inside, no text on text, all on the canvas."""

from __future__ import annotations

import re
from collections.abc import Callable
from itertools import combinations, pairwise
from xml.etree import ElementTree

import pytest
from report.drawn_systems import bonded, chain, dgx, mesh, rails, server, storage, system

import lanewise
from lanewise.api.loading import load_system, ready_systems
from lanewise.errors import UnknownName
from lanewise.report.draw import _RULE, _sheet, draw
from lanewise.report.layout import prepare
from lanewise.report.shapes import BoxShape, Canvas, LineShape, Shape, TextShape
from lanewise.results.outline import Outline, outline
from lanewise.routes.find import route
from lanewise.routes.model import Hop, LinkDirection
from lanewise.topology.model import Device, Kind, LinkKind, System


def loaded(one: System) -> Outline:
    """Both directions of every link loaded, which is the most text a drawing can hold."""
    keys = [Hop(link, down).direction for link in one.links for down in (True, False)]
    return outline(one, dict.fromkeys(keys, 123.4e9), dict.fromkeys(keys, 0.8))


BUILT = [chain(), server(8), server(16), dgx(), rails(), mesh(), bonded(), storage()]
READY = [load_system(name) for name in ready_systems()]
ALL = [*BUILT, *READY]


def plain(one: System) -> Outline:
    return outline(one)


def routed(one: System) -> Outline:
    """With the first three device-to-device trees highlighted: routes take room of their own."""
    chains = []
    for leaf in one.of_kind(Kind.GPU, Kind.SSD)[:3]:
        nodes = [leaf]
        while above := [link.a for link in one.links_at(nodes[-1]) if link.b == nodes[-1]]:
            nodes.append(above[0])
            if len(nodes) > 12:
                break
        chains.append((f"{leaf} to its root", nodes))
    return outline(one, routes=chains)


def between_gpus(one: System) -> Outline:
    """With the routes from the first GPU to up to six others highlighted, as `system draw --flows` does."""
    first, *others = one.of_kind(Kind.GPU) or [""]
    routes = [route(one, first, other) for other in others if bound(one, first, other)][-6:]
    keys = [hop.direction for each in routes for hop in each.hops]
    labelled = [(f"{first}->{each.dst}", each.nodes) for each in routes]
    return outline(one, dict.fromkeys(keys, 123.4e9), dict.fromkeys(keys, 0.8), routes=labelled)


def bound(one: System, *names: str) -> bool:
    return all(one.devices[name].host for name in names)


@pytest.fixture(params=ALL, ids=lambda one: one.name)
def any_system(request: pytest.FixtureRequest) -> System:
    return request.param


DRAWINGS = [(make, one) for make in (plain, loaded, routed) for one in ALL] + [(between_gpus, one) for one in READY]


def drawn_id(drawn: tuple[Callable[[System], Outline], System]) -> str:
    return f"{drawn[0].__name__}-{drawn[1].name}"


# A drawing is prepared once and then looked at by every test: it is frozen.
@pytest.fixture(scope="module", params=DRAWINGS, ids=drawn_id)
def outlined(request: pytest.FixtureRequest) -> Outline:
    make, one = request.param
    return make(one)


@pytest.fixture(scope="module")
def drawing(outlined: Outline) -> Canvas:
    return prepare(outlined)


def flat(drawing: Canvas) -> list[Shape]:
    return [shape for group in drawing.groups for shape in group.shapes]


def boxes_of(drawing: Canvas) -> list[BoxShape]:
    return [shape for shape in flat(drawing) if isinstance(shape, BoxShape) and shape.name]


def texts_of(drawing: Canvas) -> list[TextShape]:
    return [shape for shape in flat(drawing) if isinstance(shape, TextShape)]


def overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    slack = 0.5
    return (
        one[0] < other[2] - slack
        and other[0] < one[2] - slack
        and one[1] < other[3] - slack
        and other[1] < one[3] - slack
    )


def crossings(lines: list[LineShape], texts: list[TextShape]) -> list[tuple[LineShape, str]]:
    """The texts that lie on a line, by the rectangles of its parts."""
    inks = [(text.text, text.bounds) for text in texts]
    return [(line, text) for line in lines for part in parts(line) for text, ink in inks if overlap(part, ink)]


def parts(line: LineShape) -> list[tuple[float, float, float, float]]:
    half = line.width / 2
    return [
        (min(x0, x1) - half, min(y0, y1) - half, max(x0, x1) + half, max(y0, y1) + half)
        for (x0, y0), (x1, y1) in pairwise(line.points)
    ]


def edges(box: BoxShape) -> tuple[float, float, float, float]:
    return (box.x, box.y, box.x + box.w, box.y + box.h)


def test_every_device_stands_in_the_drawing_once(any_system: System) -> None:
    drawn = outline(any_system)
    names = [box.name for box in boxes_of(prepare(drawn))]
    hidden = {m for box in _every(drawn) for m in box.members[1:]}
    assert sorted(name for name in names if name in any_system.devices) == sorted(set(any_system.devices) - hidden)


def _every(drawn: Outline) -> list:
    stack, found = list(drawn.boxes), []
    while stack:
        found.append(stack.pop())
        stack.extend(found[-1].children)
    return found


def test_device_boxes_do_not_touch(drawing: Canvas) -> None:
    devices = [box for box in boxes_of(drawing) if box.css_class.startswith("device")]
    clash = [(a.name, b.name) for a, b in combinations(devices, 2) if overlap(edges(a), edges(b))]
    assert not clash


def test_links_of_two_kinds_between_two_boxes_run_side_by_side() -> None:
    drawn = [s for s in flat(prepare(outline(bonded()))) if isinstance(s, LineShape) and s.tip]
    assert len({line.points for line in drawn}) == len(drawn) == 11


def test_containers_of_one_kind_do_not_touch(drawing: Canvas) -> None:
    for kinds in (("host", "pool"), ("numa",)):
        alike = [box for box in boxes_of(drawing) if box.css_class in kinds]
        clash = [(a.name, b.name) for a, b in combinations(alike, 2) if overlap(edges(a), edges(b))]
        assert not clash


def test_children_stand_inside_their_parents(outlined: Outline, drawing: Canvas) -> None:
    boxes = {box.name: box for box in boxes_of(drawing)}
    parents = [box for top in outlined.boxes for box in top.walk() if box.container and box.name in boxes]
    pairs = [(parent.name, inner) for parent in parents for inner in parent.devices()]
    pairs += [(parent.name, child.name) for parent in parents for child in parent.children if child.kind == "numa"]
    assert pairs or not parents
    for parent, inner in pairs:
        left, top, right, bottom = edges(boxes[parent])
        box = boxes[inner]
        assert left <= box.x, box.name
        assert top <= box.y, box.name
        assert box.x + box.w <= right + 0.01, box.name
        assert box.y + box.h <= bottom + 0.01, box.name


def test_no_text_lies_on_another_text(drawing: Canvas) -> None:
    inks = [(text.text, text.bounds) for text in texts_of(drawing)]
    clash = [(a, b) for (a, of_a), (b, of_b) in combinations(inks, 2) if overlap(of_a, of_b)]
    assert not clash


def test_names_stay_inside_their_boxes(drawing: Canvas) -> None:
    devices = [box for box in boxes_of(drawing) if box.css_class.startswith("device")]
    names = {box.name for box in devices}
    for text in texts_of(drawing):
        if text.text in names and text.bold:
            home = next(box for box in devices if box.name == text.text)
            left, top, right, bottom = text.bounds
            assert home.x <= left, text.text
            assert right <= home.x + home.w + 0.5, text.text
            assert home.y <= top, text.text
            assert bottom <= home.y + home.h, text.text


def test_link_labels_lie_on_no_device(drawing: Canvas) -> None:
    devices = [box for box in boxes_of(drawing) if box.css_class.startswith("device") and "switch" not in box.css_class]
    labels = [(text.text, text.bounds) for text in texts_of(drawing) if text.css_class == "label"]
    clash = [(a.name, text) for a in devices for text, ink in labels if overlap(edges(a), ink)]
    assert not clash


def test_a_highlighted_route_crosses_no_text(drawing: Canvas) -> None:
    routes = [shape for shape in flat(drawing) if isinstance(shape, LineShape) and "route" in shape.css_class]
    assert not crossings(routes, texts_of(drawing))


@pytest.mark.parametrize("outlined", [drawn for drawn in DRAWINGS if drawn[1] in READY], indirect=True, ids=drawn_id)
def test_no_link_of_a_ready_system_crosses_a_text(drawing: Canvas) -> None:
    links = [shape for shape in flat(drawing) if isinstance(shape, LineShape) and shape.css_class.startswith("link")]
    assert not crossings(links, texts_of(drawing))


def test_a_drawing_is_headed_by_the_systems_name_and_its_settings() -> None:
    name, title = texts_of(prepare(outline(load_system("composable-server-gen4"))))[:2]
    assert name.text == "composable-server-gen4"
    assert title.text == "PRIMERGY CDI v1.0 with L40S GPUs (path 1, gpus 4)"


def test_a_drawing_says_how_many_routes_it_does_not_draw() -> None:
    assert "2 of 8 routes are not drawn, their load is" in lanewise.draw("rack-16gpu", "host0->gpu[0-7]")
    assert "routes are not drawn" not in lanewise.draw("rack-16gpu", "host0->gpu[0-5]")


def test_every_shape_carries_its_colour_so_that_no_style_sheet_is_needed(any_system: System) -> None:
    svg = draw(loaded(any_system))
    assert "var(" not in svg
    painted = re.findall(r"<(?:rect|polyline|path|circle|text)\b[^>]*>", svg.split("</style>")[1])
    assert len(painted) > 3
    for element in painted:
        assert re.search(r' (?:fill|stroke)="(?:#[0-9a-f]{6}|currentColor)"', element), element
        assert "currentColor" not in element or re.search(r' color="#[0-9a-f]{6}"', element), element


def test_every_class_of_a_shape_has_a_colour_in_the_dark_too() -> None:
    light, dark = _sheet()
    assert {name for _, name, _ in _RULE.findall(light)} - {"socket"} <= {name for _, name, _ in _RULE.findall(dark)}


def test_nothing_reaches_beyond_the_canvas(drawing: Canvas) -> None:
    for shape in flat(drawing):
        if isinstance(shape, TextShape):
            left, top, right, bottom = shape.bounds
        elif isinstance(shape, BoxShape):
            left, top, right, bottom = edges(shape)
        elif isinstance(shape, LineShape):
            xs, ys = zip(*shape.points, strict=True)
            left, top, right, bottom = min(xs), min(ys), max(xs), max(ys)
        else:
            continue
        assert left >= 0, shape
        assert top >= 0, shape
        assert right <= drawing.width, shape
        assert bottom <= drawing.height, shape


def test_links_are_level_or_upright(drawing: Canvas) -> None:
    for shape in flat(drawing):
        if isinstance(shape, LineShape):
            for (x0, y0), (x1, y1) in zip(shape.points, shape.points[1:], strict=False):
                assert x0 == pytest.approx(x1) or y0 == pytest.approx(y1), shape


def test_identical_nvswitches_become_one_box_and_loads_add_up() -> None:
    links = [LinkDirection("gpu0", f"nvswitch{i}", "", LinkKind.NVLINK) for i in range(6)]
    drawn = outline(dgx(), dict.fromkeys(links, 1e9), {links[3]: 0.7})
    line = next(one for one in drawn.lines if {one.a, one.b} == {"gpu0", "nvswitch0"})
    assert (line.label, line.load_ab, line.use_ab) == ("12x NVLink", 6e9, 0.7)
    assert sum(one.kind == "nvlink" for one in drawn.lines) == 8


def test_a_route_over_a_hidden_nvswitch_is_drawn_over_the_one_that_stands_for_it() -> None:
    drawn = outline(dgx(), routes=[("NV12", ["gpu0", "nvswitch4", "gpu7"])])
    assert drawn.paths[0].nodes == ("gpu0", "nvswitch0", "gpu7")
    assert any(shape.css_class == "route r0" for shape in flat(prepare(drawn)) if isinstance(shape, LineShape))


def test_two_wide_hosts_on_a_network_stand_above_and_below_its_switch() -> None:
    shapes = prepare(outline(load_system("dgx-a100-network")))
    boxes = {box.name: box for box in boxes_of(shapes)}
    assert boxes["frontend"].y < boxes["ibswitch"].y < boxes["accelerator"].y
    assert boxes["nic0"].y < boxes["sw0"].y < boxes["cpu0"].y
    assert shapes.width < 1500


def test_unbound_devices_are_told_apart_and_bound_ones_say_for_whom() -> None:
    shapes = prepare(outline(load_system("composable-server-two-hosts")))
    assert any("unbound" in box.css_class for box in boxes_of(shapes))
    said = {text.text for text in texts_of(shapes)}
    assert {"for host0", "not bound", "not bound to a host"} <= said


def test_a_load_is_printed_in_gigabytes_a_second_beside_its_link() -> None:
    shapes = prepare(outline(chain(), {LinkDirection("cpu0", "sw0", "", LinkKind.PCIE): 24.1e9}))
    assert "↓ 24.1 GB/s" in {text.text for text in texts_of(shapes)}


def test_a_load_on_a_device_that_is_not_there_names_the_nearest() -> None:
    with pytest.raises(UnknownName, match="gpu9"):
        outline(chain(), {LinkDirection("sw3", "gpu9", "", LinkKind.PCIE): 1.0})


def test_a_system_of_no_devices_can_be_drawn() -> None:
    assert draw(outline(system("empty", [], []))).startswith("<svg")


def test_the_svg_is_well_formed_and_always_the_same(any_system: System) -> None:
    first = draw(loaded(any_system))
    assert first == draw(loaded(any_system))
    ElementTree.fromstring(first)
    assert not re.search(r"(href|src)=|url\(", first)


def test_names_with_markup_stay_text() -> None:
    devices = [Device("<b>&\"'", Kind.CPU, host="<h>")]
    ElementTree.fromstring(draw(outline(system("<script>", devices, []))))
