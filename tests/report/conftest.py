"""Fixtures of the report's tests."""

from __future__ import annotations

import pytest
from report.report_samples import sample_run

from lanewise.results.run import Run


@pytest.fixture
def run() -> Run:
    return sample_run()
