"""The command `lanewise`. Nothing is loaded before Ctrl-C is taken care of; the verbs are in verbs.py."""

from __future__ import annotations

import sys

EXIT_INTERRUPTED = 130


def main() -> int:
    """Run the command line and return its exit code."""
    try:
        from lanewise.cli import verbs

        return verbs.run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED


if __name__ == "__main__":
    sys.exit(main())
