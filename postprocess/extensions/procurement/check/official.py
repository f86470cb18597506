"""The source of mpicost that comes with Plumbline: what tells the official program from another."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.processes import run_captured

DIGITS = 16
SUITE = "suite"
COMPILED = ("src", "kernels")  #: folders of the suite whose sources mpicost is made of
RECIPES = "spack_envs/spack_repo/plumbline/packages"
COMMIT = re.compile(r'commit="([0-9a-f]{40})"')
SECONDS = 60  #: that git may take for a patch


@dataclass(frozen=True)
class OfficialSource:
    """The official source, as the checker's clone has it."""

    clone: Path

    @cached_property
    def hash(self) -> str:
        """The hash that mpicost tells if it was built from it."""
        return hash_source(self.clone / SUITE)

    @cached_property
    def commits(self) -> frozenset[str]:
        """The commits from which recipes build what has no archive."""
        recipes = (self.clone / RECIPES).glob("*/package.py")
        return frozenset(name for recipe in recipes for name in COMMIT.findall(files.read_text(recipe)))

    def hash_patched(self, patches: Sequence[Path]) -> str:
        """Return the hash of mpicost with patches, in their order; empty if they do not apply.

        :raises UsageError: if git is not there
        """
        with TemporaryDirectory(prefix="plumbline-patch-") as scratch:
            suite = shutil.copytree(self.clone / SUITE, Path(scratch, SUITE))
            for patch in patches:
                if run_git_apply(Path(scratch), f"--include={SUITE}/*", str(patch)) is None:
                    return ""
            try:
                return hash_source(suite)
            except OSError:
                return ""


def hash_source(suite: Path) -> str:
    """Return the hash that mpicost built from a folder tells, as ``suite/cmake/source_hash.cmake`` has it.

    OSError if a file is missing.
    """
    names = [f"{folder}/{path.name}" for folder in COMPILED for path in suite.glob(f"{folder}/*.[ch]")]
    names += ["src/build_info.h.in", "CMakeLists.txt", "cmake/source_hash.cmake"]
    lines = (
        f"{hashlib.sha256(files.read_regular(suite / name)).hexdigest()}  {name}\n" for name in sorted(names)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:DIGITS]


def list_changed_files(patch: Path) -> list[str] | None:
    """List the files of which a patch changes lines; None if it is no unified diff.

    :raises UsageError: if git is not there
    """
    told = run_git_apply(patch.parent, "--numstat", str(patch))
    if told is None:
        return None
    lines = (line.split("\t", 2) for line in told.splitlines())
    return [name for added, deleted, name in lines if not {added, deleted} <= {"0", "-"}]


def run_git_apply(folder: Path, *words: str) -> str | None:
    """Run ``git apply`` in a folder, as if no repository were above it; its output, or None if it fails.

    :raises UsageError: if git is not there
    """
    env = {"PATH": os.environ.get("PATH", ""), "GIT_CEILING_DIRECTORIES": str(folder.parent)}
    env |= {"GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": os.devnull, "LC_ALL": "C"}
    command = ["git", "-C", str(folder), "apply", *words]
    try:
        done = run_captured(command, env, SECONDS)
    except OSError as error:
        raise UsageError(f"git: {error.strerror}; a patch is checked by it: install git") from None
    except subprocess.TimeoutExpired:
        return None
    return done.stdout if done.returncode == 0 else None
