"""What is said where Ray does not start."""

import pytest

from lanewise.engines.ray_engine import what_failed

SERVER = """Initialization failure from server:
Traceback (most recent call last):
  File "proxier.py", line 700, in Datapath
RuntimeError: Starting Ray client server failed. See ray_client_server_23000.err
"""


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (RuntimeError(SERVER), "RuntimeError: Starting Ray client server failed. See ray_client_server_23000.err"),
        (ConnectionError("ray client connection timeout\nat 127.0.0.1"), "ray client connection timeout"),
        (TimeoutError(), "TimeoutError"),
    ],
)
def test_the_line_that_says_what_failed(error: Exception, line: str) -> None:
    assert what_failed(error) == line
