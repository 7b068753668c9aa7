"""The command `lanewise`. Nothing is loaded before Ctrl-C is taken care of; the verbs are in verbs.py."""

from __future__ import annotations

import os
import signal
import sys

EXIT_INTERRUPTED = 130


def main() -> int:
    """Run the command line and return its exit code; SIGTERM and a lost terminal stop it as Ctrl-C does."""
    try:
        _prepare()
        from lanewise.cli import verbs

        return verbs.run(sys.argv[1:])
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return EXIT_INTERRUPTED


def _prepare() -> None:
    for wanted in (signal.SIGTERM, getattr(signal, "SIGHUP", signal.SIGTERM)):
        if signal.getsignal(wanted) is signal.SIG_DFL:  # nohup has it ignored
            signal.signal(wanted, signal.default_int_handler)
    # A stream that the shell has closed (>&-) is None, and what is written there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115


if __name__ == "__main__":
    sys.exit(main())
