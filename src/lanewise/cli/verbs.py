"""All verbs as one command, and what happens to errors, Ctrl-C and readers that leave early."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import Annotated, Any

import typer

from lanewise.cli import interrupts, terminal
from lanewise.cli.command import Command, QuickGroup
from lanewise.errors import EXIT_BAD_INPUT, LanewiseError

VERBS = {
    "discover": "Read a machine into a description, from dumps or /sys.",
    "route": "Show the route between two devices, or all pairs and their peers.",
    "predict": "Predict flows, transfers, all pairs, or an inference service.",
    "plan": "Rank systems, place devices, pin network cards, and say why.",
    "measure": "Measure copies, peers, storage and network.",
    "check": "Judge whether each path delivers what it should.",
    "loadtest": "Load-test this machine with MLPerf LoadGen.",
    "serve": "Serve queries as an Accelerator node of load tests.",
    "director": "Compose servers from a pool over Redfish, knowing the bandwidth.",
    "fleet": "Check many machines together: one verdict a node.",
    "study": "Run studies: published tables compared with predictions.",
    "accuracy": "Score predictions on measured machines.",
    "calibrate": "Fit unknown figures of parts to rows of studies.",
    "report": "Write a saved run as one HTML page.",
    "compare": "Compare two runs, sources or systems; show drift.",
    "system": "List, show, draw, export systems; attach and detach devices.",
    "parts": "List and show parts, each figure with its source.",
    "doctor": "List what is installed and what is missing.",
}


TERMINAL_OPTIONS = [
    ("-q, --quiet", "Show no progress and no notes."),
    ("--color auto|always|never", "Colour the output. [default: auto, which honours NO_COLOR]"),
]


class Verbs(QuickGroup):
    """The verbs in the order in which a user meets them; each is imported when used, which halves the start time."""

    def list_commands(self, ctx: Any) -> list[str]:
        """Their names."""
        return list(VERBS)

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """The verb of that name: the function, or the Typer application, of the module of that name; None if none."""
        if cmd_name not in VERBS:
            return None
        module = import_module(f"lanewise.cli.{cmd_name}")
        alone = typer.Typer(add_completion=False, rich_markup_mode=None)
        if hasattr(module, "app"):
            alone.add_typer(module.app, name=cmd_name)
            group: Any = typer.main.get_command(alone)
            return group.commands[cmd_name]
        alone.command(cmd_name, cls=Command)(getattr(module, cmd_name))
        return typer.main.get_command(alone)

    def format_commands(self, ctx: Any, formatter: Any) -> None:
        """What they are for, without loading them; before them the options that `_run` takes from anywhere."""
        with formatter.section("Options of every verb"):
            formatter.write_dl(TERMINAL_OPTIONS)
        with formatter.section("Commands"):
            formatter.write_dl(list(VERBS.items()))


app = typer.Typer(
    name="lanewise",
    cls=Verbs,
    help="Measure, predict and compose the data paths that feed GPUs.",
    epilog="Exit codes: 0 fine, 1 a negative verdict (INVALID, does not "
    "fit, a slow path), 2 bad input, 3 not everything could be judged (check, fleet check), 128 + N signal N (130: "
    "Ctrl-C).",
    context_settings={"help_option_names": ["-h", "--help"]},
    no_args_is_help=True,
    # Typer reads the value of every option with pydantic, which costs as much as all the rest of a start; its two
    # options for completion are there only when they can matter.
    add_completion=not sys.argv[1:2] or sys.argv[1].startswith("--") or "_LANEWISE_COMPLETE" in os.environ,
    rich_markup_mode=None,  # plain help: nothing to import, the same on every terminal
    pretty_exceptions_enable=False,
)


@app.callback()
def global_options(
    version: Annotated[
        bool,
        typer.Option(
            "-V",
            "--version",
            is_eager=True,
            callback=lambda on: _version() if on else None,
            help="Show the version and exit.",
        ),
    ] = False,
) -> None:
    """What holds for every verb."""


_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


def run(arguments: Sequence[str]) -> int:
    """Run the command line and return its exit code."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
    except LanewiseError as error:
        terminal.print_error(error.show())
        return _interrupted() if interrupts.received() else EXIT_BAD_INPUT
    except (KeyboardInterrupt, typer.Abort):
        return _interrupted()
    except BrokenPipeError:
        _drop_stdout()  # the reader (head, less) has what it wanted
        return 0
    except OSError as error:
        if error.errno not in _NO_ROOM:
            raise
        _drop_stdout()
        terminal.print_error("error: no space left to write the output\nhint:  make room, or write elsewhere")
        return EXIT_BAD_INPUT
    except Exception as error:
        if not (interrupts.received() or isinstance(error.__cause__ or error.__context__, KeyboardInterrupt)):
            raise
        return _interrupted()  # a library turned the interrupt into another error
    return code


def _interrupted() -> int:
    terminal.print_error("interrupted")
    return interrupts.exit_code()


def _drop_stdout() -> None:
    # Python flushes stdout once more at exit, and would complain a second time.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _run(arguments: Sequence[str]) -> int:
    if "_LANEWISE_COMPLETE" in os.environ:
        app(prog_name="lanewise")
    command = typer.main.get_command(app)
    arguments = _without_terminal_options(arguments)
    try:
        with command.make_context("lanewise", _with_json_target(arguments)) as context:
            command.invoke(context)
    except typer.Exit as stop:
        return int(stop.exit_code)
    except SystemExit:
        raise BrokenPipeError from None  # rich leaves in this way when its reader has left
    except Exception as error:
        if not _is_usage(error):
            raise
        return _usage(error, arguments)
    return 0


def _without_terminal_options(arguments: Sequence[str]) -> list[str]:
    """The arguments without -q and --color, which take effect here; InputError for another colour."""
    words, rest = [], list(arguments)
    while rest:
        word = rest.pop(0)
        if word in ("-q", "--quiet"):
            terminal.be_quiet()
        elif word == "--color" or word.startswith("--color="):
            terminal.set_colour(word.partition("=")[2] or (rest.pop(0) if rest else ""))
        else:
            words.append(word)
    return words


def _with_json_target(arguments: Sequence[str]) -> list[str]:
    """The arguments with `--json` alone as `--json -`: the next word is its value only if it is '-' or a .json file."""
    words = []
    for word, following in zip(arguments, [*arguments[1:], ""], strict=True):
        words.append(word)
        if word == "--json" and following != "-" and not following.endswith(".json"):
            words.append("-")
    return words


def _is_usage(error: Exception) -> bool:
    # Typer has carried Click's exceptions under its own name since 0.26; both have these two.
    return hasattr(error, "format_message") and hasattr(error, "exit_code")


def _usage(error: Any, arguments: Sequence[str]) -> int:
    context: Any = getattr(error, "ctx", None)
    if type(error).__name__ == "NoArgsIsHelpError":
        sys.stdout.write(f"{context.get_help()}\n")
        return 0 if not arguments else EXIT_BAD_INPUT
    command, path = _command_of(arguments) if context is None else (context.command, context.command_path)
    text = str(error.format_message()).partition("\n")[0].partition(" (Possible")[0].rstrip(".")
    cause, hint = text[:1].lower() + text[1:], ""
    if context is not None and cause.startswith("no such command"):
        cause, hint = _unknown_verb(context, cause)
    else:
        hint = _what_to_type(error, context, command, path)
    end = " " if hint.endswith("?") else "; " if hint else ""
    terminal.print_error(f"error: {cause}\nhint:  {hint}{end}see {path} --help")
    return EXIT_BAD_INPUT


def _command_of(arguments: Sequence[str]) -> tuple[Any, str]:
    """The command that the first words name, and those words."""
    command: Any = typer.main.get_command(app)
    path = "lanewise"
    for word in arguments:
        inner = command.get_command(None, word) if hasattr(command, "get_command") else None
        if inner is None:
            break
        command, path = inner, f"{path} {word}"
    return command, path


def _unknown_verb(context: Any, cause: str) -> tuple[str, str]:
    from lanewise.errors import unknown_name

    error = unknown_name("verb", cause.split("'")[1], context.command.list_commands(context))
    return error.cause, error.hint


def _what_to_type(error: Any, context: Any, command: Any, path: str) -> str:
    """How the option or argument of a usage error is written."""
    flag, parameter = getattr(error, "option_name", None), getattr(error, "param", None)
    if getattr(error, "possibilities", None):
        return f"did you mean {' or '.join(sorted(error.possibilities))}?"
    if parameter is None:
        parameter = next((entry for entry in command.params if flag in entry.opts), None)
    if parameter is None:
        return ""
    if parameter.param_type_name == "argument":
        pieces = " ".join(command.collect_usage_pieces(context)[1:]).replace("{", "").replace("}", "")
        return f"write {path} {pieces}"
    return f"write {flag or parameter.opts[-1]} {parameter.metavar or 'VALUE'}"


def _version() -> None:
    from lanewise.cli.terminal import version

    sys.stdout.write(f"lanewise {version()}\n")
    raise typer.Exit
