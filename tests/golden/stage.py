"""Runs commands in this process, on a machine without a name, and writes down all that comes of them."""

import contextlib
import io
import os
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from datetime import datetime, timezone
from pathlib import Path
from unittest import mock

from postprocess.main import main
from tests.golden.normal import normalise
from tests.support.paths import ROOT

#: All that a command sees of the environment. No program that only some machines have is in reach.
VARIABLES = {
    "COLUMNS": "80",
    "LANG": "C.UTF-8",
    "TZ": "UTC",
    "PATH": "/usr/bin:/bin",
    "PLUMBLINE_NO_SPACK": "1",
    "PLUMBLINE_BESIDE_OTHERS": "1",
}


class Stage:
    """A folder with a work directory, in which commands run; ``texts`` has what came of them by file name."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.home = folder / "home"
        self.home.mkdir(parents=True)
        self.texts: dict[str, str] = {}
        self._began = datetime.now(timezone.utc)

    def run(self, name: str, words: Sequence[object], files: Sequence[Path] = ()) -> int | None:
        """Run a command; keep its output, exit status and the files that it wrote. Return the status."""
        typed = [str(word) for word in words]
        status, output, errors = call(self.home, typed)
        parts = [f"$ plumbline {' '.join(typed)}\n", output]
        parts += [f"--- standard error\n{errors}"] if errors else []
        self.keep(f"{name}.txt", "".join([*parts, f"--- exit status {status}\n"]))
        for path in files:
            self.keep(f"{name}.{path.name}", read_written(path))
        return status

    def keep(self, name: str, text: str) -> None:
        """Keep a text as it would be anywhere."""
        assert name not in self.texts, f"{name}: kept twice"
        places = {str(self.home): "HOME", str(self.folder): "FOLDER", str(ROOT): "SOURCE"}
        self.texts[name] = normalise(text, places, self._began)


def read_written(path: Path) -> str:
    """Read a file that a command was to write."""
    return path.read_text(encoding="utf-8") if path.exists() else "(not written)\n"


def call(home: Path, words: Sequence[str]) -> tuple[int | None, str, str]:
    """Call the command line; exit status, standard output and standard error."""
    output, errors = (io.TextIOWrapper(io.BytesIO(), "utf-8", newline="") for _ in range(2))
    handler = signal.getsignal(signal.SIGTERM)
    try:
        with (
            contextlib.redirect_stdout(output),
            contextlib.redirect_stderr(errors),
            mock.patch.object(sys, "argv", ["plumbline", *words]),
        ):
            try:
                status = main(str(ROOT), str(home), words)
            except SystemExit as end:
                status = end.code
    finally:
        signal.signal(signal.SIGTERM, handler)
    return status, read_all(output), read_all(errors)


def read_all(stream: io.TextIOWrapper) -> str:
    """Read all that was written to a stream, as text or as bytes."""
    stream.seek(0)
    return stream.read()


@contextlib.contextmanager
def open_stage() -> Iterator[Stage]:
    """Open a stage whose clock of durations stands still.

    The name of its folder has nothing that Markdown escapes, as an underscore.
    """
    stage = Stage(Path("/tmp").resolve() / f"golden-{time.time_ns() % 16**8:08x}")
    variables = VARIABLES | {"HOME": str(stage.folder), "TMPDIR": str(stage.folder)}
    try:
        with (
            mock.patch.dict(os.environ, variables, clear=True),
            mock.patch.object(tempfile, "tempdir", str(stage.folder)),
            mock.patch.object(time, "monotonic", lambda: 1000.0),
            entered(stage.folder),
        ):
            yield stage
    finally:
        shutil.rmtree(stage.folder)


@contextlib.contextmanager
def entered(folder: Path) -> Iterator[None]:
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)
