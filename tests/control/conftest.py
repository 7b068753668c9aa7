"""A listener watches its clients with what Linux alone has (POLLRDHUP)."""

import sys

import pytest


def pytest_collection_modifyitems(items):
    if sys.platform != "linux":
        for item in items:
            if "tests/control" in str(item.path):
                item.add_marker(pytest.mark.skip(reason="listeners run on Linux alone"))
