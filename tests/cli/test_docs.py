"""What the README and the guides show is what the binary prints: every `$ lanewise` of a console block is run.

A line `...` stands for any lines. Blocks without it are written anew by: python tests/cli/test_docs.py
`cat > FILE <<'EOF'` writes a file for the commands below it.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

if __name__ == "__main__":
    sys.path.insert(0, str(Path(__file__).parents[1]))

from cli_binary import BINARY
from forked_cli import forked

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", ROOT / "ARCHITECTURE.md", *sorted((ROOT / "docs" / "guides").glob("*.md"))]
HEREDOC = re.compile(r"cat > \S+ <<'EOF'\n.*?^EOF$", re.DOTALL | re.MULTILINE)
STATUS = ' || echo "exit code $?"'  # after a command that may refuse something
SHELL = re.compile(r"[|&;<>$*?~`(){}!\\\\\n\"]")  # what only a shell understands, outside of quotes
BLOCK = re.compile(r"```console\n(.*?)```", re.DOTALL)


def commands(block: str) -> Iterator[tuple[str, str]]:
    """Each command of a block with the output shown below it."""
    for piece in re.split(r"^\$ ", block, flags=re.MULTILINE)[1:]:
        written = HEREDOC.match(piece)
        command, _, shown = piece.partition("\n")
        yield (written[0], "") if written else (command, shown.strip("\n"))


def is_run(command: str) -> bool:
    return command.startswith(("lanewise", "cat >"))


def printed(command: str, folder: str) -> str:
    """What a command prints to stdout, as it would in a pipe."""
    kept = {k: v for k, v in os.environ.items() if k not in ("NO_COLOR", "FORCE_COLOR", "TERM")}
    env = {**kept, "PATH": f"{BINARY.parent}:{os.environ['PATH']}", "COLUMNS": "110"}
    alone = command.removesuffix(STATUS)
    if alone.startswith("lanewise ") and not SHELL.search(re.sub(r"'[^']*'", "", alone)):
        done = forked(shlex.split(alone)[1:], Path(folder), env)
        if alone != command and done.returncode:
            done.stdout += f"exit code {done.returncode}\n"
            done.returncode = 0
    else:
        done = subprocess.run(
            ["bash", "-c", command], cwd=folder, env=env, capture_output=True, text=True, timeout=600, check=False
        )
    assert done.returncode == 0, f"{command}\n{done.stderr}"
    return "\n".join(line.rstrip() for line in done.stdout.strip("\n").splitlines())


def pattern(shown: str) -> str:
    parts = re.split(r"^\.\.\.\n?", shown + "\n", flags=re.MULTILINE)
    return "(?:.*\n)*?".join(re.escape(part) for part in parts) + "$"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_a_page_shows_what_the_commands_print(page: Path, tmp_path: Path):
    for block in BLOCK.findall(page.read_text(encoding="utf-8")):
        for command, shown in commands(block):
            if is_run(command):
                found = printed(command, str(tmp_path))
                assert re.match(pattern(shown), found + "\n"), f"{command}\n--- printed\n{found}\n--- shown\n{shown}"


def test_the_manual_page_is_up_to_date():
    """`make man` writes it from the verbs and options."""
    done = subprocess.run([BINARY.with_name("python"), ROOT / "docs" / "man" / "generate.py", "--check"], check=False)
    assert done.returncode == 0


def test_the_reference_names_every_option():
    """docs/reference/cli.md has a line for each verb; the options of every verb are in the manual page."""
    page = (ROOT / "docs" / "man" / "lanewise.1").read_text(encoding="utf-8").replace("\\-", "-")
    reference = (ROOT / "docs" / "reference" / "cli.md").read_text(encoding="utf-8")
    flags = set(re.findall(r"--[a-z][a-z0-9-]+", reference)) - {"--install-completion"}
    assert {flag for flag in flags if flag not in page} == set()


def rewrite(page: Path) -> None:
    """Put what the commands print now in place of what the page shows."""
    with tempfile.TemporaryDirectory() as folder:

        def renew(match: re.Match[str]) -> str:
            made = []
            for command, shown in commands(match[1]):
                fresh = printed(command, folder) if is_run(command) else shown
                kept = shown if re.search(r"^\.\.\.$", shown, re.MULTILINE) else fresh
                made.append(f"$ {command}\n{kept}".rstrip("\n") + "\n")
            return "```console\n" + "".join(made) + "```"

        text = page.read_text(encoding="utf-8")
        page.write_text(BLOCK.sub(renew, text), encoding="utf-8")


if __name__ == "__main__":
    for each in PAGES:
        rewrite(each)
