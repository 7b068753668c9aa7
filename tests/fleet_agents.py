"""An agent for tests of how nodes are reached: it answers, is silent, or dies as its job says."""

from __future__ import annotations

import os
import signal
import time

from lanewise.fleet.node import NodeReport
from lanewise.fleet.survey import NodeJob


class TestAgent:
    """Answers with the name of the job."""

    __test__ = False  # no test itself

    def __init__(self, name: str, driver_version: str) -> None:
        self.name = name

    def answer(self, job: NodeJob) -> NodeReport:
        """The job's name; "die" kills the process, "sleep" outlasts every limit."""
        if job.do == "die":
            os.kill(os.getpid(), signal.SIGKILL)
        if job.do == "sleep":
            time.sleep(600)
        return NodeReport(self.name, facts={"did": job.do})
