"""A PostgreSQL server of its own in a temporary folder, as an unprivileged user: it refuses to run as root."""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import Any

UNPRIVILEGED = "nobody"


def missing() -> str:
    """Why no server can be started here; '' if one can."""
    try:
        import psycopg
    except ImportError:
        return "needs lanewise[postgresql]"
    del psycopg
    return "" if _programs() != Path() else "needs PostgreSQL's server (Debian: postgresql)"


class PostgresServer:
    """A running server, reached over a socket in its folder alone; `durable` waits for the disk at each commit."""

    def __init__(self, durable: bool = False) -> None:
        self._programs = _programs()
        self._folder = Path(tempfile.mkdtemp(prefix="lanewise-pg-"))
        self._user: dict[str, Any] = {}
        if os.geteuid() == 0:
            self._user = {"user": UNPRIVILEGED, "group": "nogroup", "extra_groups": []}
            shutil.chown(self._folder, UNPRIVILEGED, "nogroup")
        self._count = 0
        try:
            self._run("initdb", "-U", "director", "-A", "trust", "--no-sync", "--no-locale", "-E", "UTF8")
            settings = {"listen_addresses": "", "unix_socket_directories": self._folder, "fsync": durable}
            options = " ".join(f"-c {name}='{value}'" for name, value in settings.items())
            self._run("pg_ctl", "-w", "-t", "120", "-l", str(self._folder / "log"), "-o", options, "start")
        except BaseException:
            self.close()
            raise

    def new_database(self) -> str:
        """The URL of an empty database."""
        import psycopg

        self._count += 1
        name = f"director{self._count}"
        with psycopg.connect(f"host={self._folder} user=director dbname=postgres", autocommit=True) as connection:
            connection.execute(f"CREATE DATABASE {name}".encode())
        return f"postgresql://director@/{name}?host={self._folder}"

    def close(self) -> None:
        """Stop the server and remove its folder."""
        if (self._folder / "data" / "postmaster.pid").exists():
            self._run("pg_ctl", "-m", "immediate", "-w", "stop")
        shutil.rmtree(self._folder, ignore_errors=True)

    def _run(self, program: str, *words: str) -> None:
        command = [str(self._programs / program), "-D", str(self._folder / "data"), *words]
        done = subprocess.run(command, cwd=self._folder, capture_output=True, text=True, check=False, **self._user)
        assert done.returncode == 0, done.stderr + done.stdout


def _programs() -> Path:
    """The folder of the newest server's programs; Path() if there is none."""
    path = shutil.which("initdb")
    if path and shutil.which("pg_ctl"):
        return Path(path).parent
    folders = Path("/usr/lib/postgresql").glob("*/bin/initdb")
    return max((each.parent for each in folders), key=lambda each: int(each.parent.name), default=Path())
