"""Lets every test import what lies in this folder: `from oracles import slow_maxmin`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
