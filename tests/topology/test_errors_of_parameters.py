"""How wrong parameters and settings are refused."""

from __future__ import annotations

from collections.abc import Callable

from inline_snapshot import snapshot

Shown = Callable[..., str]


def test_a_setting_that_no_parameter_bears(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
"""
    assert refused(body, pth=2) == snapshot("""\
error: s.yaml: unknown parameter 'pth'
hint:  did you mean path?\
""")


def test_a_setting_where_there_are_no_parameters(refused: Shown) -> None:
    body = """\
devices:
  cpu0: {cpu: null}
"""
    assert refused(body, path=2) == snapshot("""\
error: s.yaml: unknown parameter 'path'
hint:  this system has no parameters\
""")


def test_a_value_that_is_not_listed(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
"""
    assert refused(body, path=3) == snapshot("""\
error: s.yaml:4: parameter 'path' cannot be 3
hint:  allowed: 1, 2\
""")


def test_a_value_out_of_range(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
"""
    assert refused(body, gpus=9) == snapshot("""\
error: s.yaml:5: parameter 'gpus' cannot be 9
hint:  allowed: 1 to 4\
""")


def test_a_default_outside_its_values(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 5, values: [1, 2]}
devices: {}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: the default of parameter 'path' is 5, which is not an allowed value
hint:  allowed: 1, 2\
""")


def test_a_minimum_above_the_maximum(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 2, min: 3, max: 1}
devices: {}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: parameter 'path' has min 3 above max 1
hint:  swap the two\
""")


def test_a_parameter_name_with_a_dash(refused: Shown) -> None:
    body = """\
parameters:
  max-gpus: {default: 2}
devices: {}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:4: 'max-gpus' cannot be a parameter
hint:  use letters, digits and _\
""")


def test_an_unknown_parameter_in_a_range(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
  "gpu[0-{gpu-1}]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:8: unknown parameter 'gpu'
hint:  did you mean gpus?\
""")


def test_arithmetic_that_is_none(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
  "gpu[0-{gpus ** 2}]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:8: cannot calculate 'gpus ** 2': ** is not supported
hint:  use whole numbers, parameters, + - * // % ( ), min() and max()\
""")


def test_a_division_by_zero(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
  "gpu[0-{gpus // (path - 1)}]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:8: 'gpus // (path - 1)' divides by zero
hint:  use whole numbers, parameters, + - * // % ( ), min() and max()\
""")


def test_a_brace_without_a_partner(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
  "gpu[0-{gpus]": {gpu: null}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:8: a brace in 'gpu[0-{gpus]' has no partner
hint:  write {parameter} or {parameter-1}\
""")


def test_a_condition_that_is_none(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
  gpu0: {gpu: null, when: "path >"}
"""
    assert refused(body) == snapshot("""\
error: s.yaml:8: cannot calculate 'path >': invalid syntax
hint:  use whole numbers, parameters, + - * // % ( ), min() and max()\
""")


def test_a_written_out_text_set_otherwise(refused: Shown) -> None:
    body = """\
parameters:
  path: {default: 1, values: [1, 2]}
  gpus: {default: 2, min: 1, max: 4}
devices:
  cpu0: {cpu: null}
settings: {path: 2}
"""
    assert refused(body, path=1) == snapshot("""\
error: s.yaml:8: this text was written out with path = 2; it cannot be set to 1
hint:  set it on the description this came from\
""")
