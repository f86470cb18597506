"""Build one program of an environment, or find without Spack that it is already built.

``python -m spack_envs.install WORK SPACK ENVIRONMENT PROGRAM RESULT``: Spack's output goes to standard output;
the reason of a failure is the last line of standard error. ``RESULT`` says what was installed; a failure is
recorded beside it.
"""

import fcntl
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path

import yaml

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.os_errors import find_file, lock_file
from site_configs.programs.program import PRODUCTS, Program
from spack_envs import installation, layout
from spack_envs.provide import ANSWER_SECONDS, FetchError, run_git
from spack_envs.spack_repo.plumbline.source_digest import source_digest

Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  #: ten times as fast, if it was built in
Say = Callable[[str], None]


@dataclass(frozen=True)
class Builder:
    """Build programs in one environment.

    :param work: work directory, where Spack may write
    :param spack: Spack's executable
    :param say: gets each line of Spack's output
    :param users: whether the user's own Spack configuration applies too
    """

    work: Path
    spack: Path
    directory: Path
    say: Say
    users: bool = False

    def install(self, program: str) -> installation.Installation:
        """Build a program if it is not built, or if its sources or anything it was built with has changed.

        :raises SpackEnvironmentError: if it cannot be built, in one line. What others need is not touched.
        """
        product = PRODUCTS[program]
        if existing := self.unchanged(product):
            return existing
        with hold_build_lock(self.directory):
            return self.unchanged(product) or self.build(product)

    def unchanged(self, product: Program) -> installation.Installation | None:
        """Return the installed program if it is what would be installed now."""
        for place in (self.directory, self.own_place(product)):
            existing = installation.read_stamp(place, product.name)
            if not existing or existing.key != installation.compute_key(self.directory, place):
                continue
            if installation.is_present(existing) and self.is_current(existing):
                return existing
        return None

    def is_current(self, found: installation.Installation) -> bool:
        """Return whether an installation was built from the current sources."""
        if found.program != "mpicost":
            return True
        try:
            digest = files.read_text(Path(found.prefix) / installation.DIGEST)
            settings = yaml.load(files.read_text(self.directory / "machine.yaml"), Loader)
        except OSError:
            return False
        return digest == source_digest(Path(settings["develop"]["mpicost"]["path"]))

    def build(self, product: Program) -> installation.Installation:
        """Solve if there is no solution, build, and write a stamp."""
        place = self.solved(product)
        self.call(place, "install", product.package, silent=explain_no_answer(product))
        prefix = self.call(place, "location", "-i", product.package).split()[-1]
        spec = f"{product.package}/{layout.read_locked_hash(place, product.package)}"
        key = installation.compute_key(self.directory, place)
        done = installation.Installation(product.name, prefix, spec, str(place), key)
        if not installation.is_present(done):
            fix = f"remove {layout.SpackLayout(self.work).installed} and build again"
            raise layout.SpackEnvironmentError(f"{prefix}: Spack has it, but it is not whole: {fix}")
        installation.write_stamp(done)
        return done

    def solved(self, product: Program) -> Path:
        """Solve the environment to build in, and return it: that of all programs, unless it has no solution.

        A program whose package cannot be solved must not affect the others.
        """
        if (self.directory / "spack.lock").is_file():
            return self.directory
        try:
            self.call(self.directory, "concretize")
            return self.directory
        except layout.SpackEnvironmentError as error:
            self.say(f"{self.directory.name}: {error}; {product.name} is solved by itself")
        place = self.own_place(product)
        write_single_program(self.directory, place, product)
        self.call(place, "concretize")
        return place

    def own_place(self, product: Program) -> Path:
        """Return the folder of a program's own environment."""
        return self.directory / "alone" / product.name

    def call(self, place: Path, *words: str, silent: str = "") -> str:
        """Run a command of Spack in an environment, and return its output.

        :param silent: why git gets no answer from upstream, if so: Spack's git would wait for minutes
        :raises SpackEnvironmentError: if it fails.
        """
        variables = layout.spack_environment_variables(self.work, self.spack)
        if self.users:
            del variables["SPACK_DISABLE_LOCAL_CONFIG"]
        if silent:
            variables["GIT_ALLOW_PROTOCOL"] = "file"
        output = [f"fatal: {silent}\n"] if silent else []
        with subprocess.Popen(
            [str(self.spack), "-e", str(place), *words],
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            for line in process.stdout or ():
                output.append(line)
                self.say(line.rstrip())
        if process.returncode != 0:
            raise layout.extract_spack_error("".join(output))
        return "".join(output)


def explain_no_answer(product: Program) -> str:
    """Explain why the repository of a program does not answer; empty if it does, or if there is none."""
    if product.git:
        try:
            run_git(["ls-remote", "--", product.git, "HEAD"], product.git, ANSWER_SECONDS)
        except FetchError as error:
            return str(error).removeprefix(f"{product.git}: ")
    return ""


@contextmanager
def hold_build_lock(directory: Path) -> Iterator[None]:
    """Hold the lock that lets one process build at a time; the others find what it built."""
    try:
        with (directory / ".plumbline.lock").open("w") as lock:
            lock_file(lock, directory / ".plumbline.lock", fcntl.LOCK_EX)
            yield
    except OSError as error:
        raise layout.SpackEnvironmentError(f"{find_file(error) or directory}: {error.strerror}") from None
    except UsageError as error:
        raise layout.SpackEnvironmentError(str(error)) from None


def write_single_program(directory: Path, place: Path, product: Program) -> None:
    whole = yaml.safe_load(files.read_text(directory / "spack.yaml"))["spack"]
    common = directory.parent / "common"
    definitions = yaml.safe_load(files.read_text(common / "definitions.yaml"))["definitions"]
    specs = [spec for definition in definitions for spec in definition["programs"]]
    package_specs = [spec for spec in specs if spec.partition("@")[0] == product.package]
    include = [str(directory / "machine.yaml"), str(common)]
    text = yaml.safe_dump({"spack": {**whole, "include": include, "specs": package_specs}}, sort_keys=False)
    (place / "spack.lock").unlink(missing_ok=True)
    files.write_text(place / "spack.yaml", text)


def main(words: list[str]) -> int:
    """Install one program; see the module's docstring."""
    work, spack, directory, program, result = words
    builder = Builder(Path(work), Path(spack), Path(directory), lambda line: print(line, flush=True))
    try:
        done = builder.install(program)
        files.write_text(Path(result), json.dumps(asdict(done)))
    except layout.SpackEnvironmentError as error:
        with suppress(OSError):  # standard error has the reason, too
            installation.write_failure(Path(result).parent, error)
        print(f"{program}: {error}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
