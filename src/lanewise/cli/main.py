"""The command `lanewise`. Signals are taken care of before anything else is loaded; the verbs are in verbs.py.

Ctrl-C, SIGTERM and a lost terminal end the program with `interrupted` and 128 + the signal's number: at once while the
program loads and after its answer is written, in between as a KeyboardInterrupt that keeps what is finished.
"""

from __future__ import annotations

import os
import sys

_SIGINT = 2


def _quit(number: int, frame: object) -> None:
    """End at once: nothing is written yet, or everything is."""
    os.write(2, b"interrupted\n")
    os._exit(128 + number)


try:
    # The module behind `signal`, which loads for some milliseconds itself.
    import _signal as signals

    if signals.getsignal(_SIGINT) is signals.default_int_handler:  # a job in the background of a shell ignores it
        signals.signal(_SIGINT, _quit)
    from lanewise.cli import interrupts
except KeyboardInterrupt:
    _quit(_SIGINT, None)


def main() -> int:
    """Run the command line and return its exit code."""
    interrupts.handle(_quit)
    # A stream that the shell has closed (>&-) is None, and what is written there goes nowhere.
    sys.stdout = sys.stdout or open(os.devnull, "w")  # noqa: SIM115 - open until the end
    sys.stderr = sys.stderr or open(os.devnull, "w")  # noqa: SIM115
    try:
        from lanewise.cli import verbs

        try:
            interrupts.handle(interrupts.interrupt)
            code = verbs.run(sys.argv[1:])
            if "nixl" in sys.modules:  # all is written, and its wheel crashes where a process ends regularly
                sys.stdout.flush()
                os._exit(code)
            return code
        finally:
            interrupts.handle(_quit)
    except KeyboardInterrupt:
        sys.stderr.write("interrupted\n")
        return interrupts.exit_code()


if __name__ == "__main__":
    sys.exit(main())
