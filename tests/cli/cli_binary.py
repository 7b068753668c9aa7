"""Where the binary under test lies."""

import sys
from pathlib import Path

BINARY = Path(sys.executable).with_name("lanewise")
