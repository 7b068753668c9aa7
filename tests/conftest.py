"""Lets every test import what lies in this folder: `from oracles import slow_maxmin`."""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parent))

# In CI the same examples each time, so that a landing does not hang on luck; everywhere else fresh ones.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
