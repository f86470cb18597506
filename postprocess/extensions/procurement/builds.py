"""Run rules of builds: the official source or a patch that is named and allowed, published flags, a lock file.

What can be computed is not believed: the source of mpicost with the named patches must have the hash that ran,
and the patches that Spack applied stand with their SHA-256 in its lock file. Where neither tells, a code says
that nobody checked the source.
"""

import hashlib
import os
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import plural
from postprocess.base.processes import run_captured
from postprocess.base.records import Text, parse_record
from postprocess.base.strict_json import read_json
from postprocess.extensions.procurement.offer import PATCHES, LaunchEvidence, Patch
from postprocess.extensions.procurement.rules.rules import Category, Change, Rules
from postprocess.extensions.procurement.violations import Code, Violation
from postprocess.model.conditions import flags_of
from postprocess.model.launch import Records
from postprocess.model.routines.mpicost import OWN_PROGRAM, OWN_PROGRAMS
from site_configs.programs.program import PROGRAMS, find_product
from spack_envs.installation import UNKNOWN, BuiltBinary, locate_program_file, read_program

DIGITS = 16  #: of the hash of a source
SUITE = "suite"
SOURCES = ("src", "kernels")  #: folders of the suite whose sources mpicost is made of
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
    names = [f"{folder}/{path.name}" for folder in SOURCES for path in suite.glob(f"{folder}/*.[ch]")]
    names += ["src/build_info.h.in", "CMakeLists.txt", "cmake/source_hash.cmake"]
    lines = (
        f"{hashlib.sha256(files.read_regular(suite / name)).hexdigest()}  {name}\n" for name in sorted(names)
    )
    return hashlib.sha256("".join(lines).encode()).hexdigest()[:DIGITS]


def list_changed_files(patch: Path) -> list[str] | None:
    """List the files of which a patch changes lines; None if it is not a unified diff.

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


LEVEL = re.compile(r"-O\S*")
#: What published builds have, what compilers record by themselves, and what distributions add to everything.
USUAL = re.compile(
    r"-DNDEBUG|-D_(FORTIFY_SOURCE|XOPEN_SOURCE|GNU_SOURCE|GLIBCXX_ASSERTIONS).*|-U_FORTIFY_SOURCE"
    r"|-std=.*|-frecord-gcc-switches|-pthread|-f(pic|PIC|pie|PIE)|-march=x86-64|-mtune=generic|-m64"
    r"|-mlittle-endian|-mabi=.*|-f(asynchronous-unwind-tables|exceptions|stack-protector.*|cf-protection.*)"
    r"|-fstack-clash-protection|-fno-plt|-f?no-omit-frame-pointer|-mno-omit-leaf-frame-pointer|-W[^l].*"
)
#: The processor for which Spack compiles all that it builds on a machine.
TARGET = re.compile(r"-m(arch|tune|cpu)=.*")


def find_changed_flags(program: str, told: str, by_spack: bool) -> list[str] | None:
    """Find the flags that the published build does not have; None if nothing is told.

    :param told: the flags, those of several compilations separated by semicolons
    """
    if not told.strip() or told == UNKNOWN:
        return None
    found: list[str] = []
    for one in told.split(";"):
        words = (flags_of(one) or "").split()
        levels = [word for word in words if LEVEL.fullmatch(word)]
        if (levels or ["-O0"])[-1] != PROGRAMS[program].level:
            found.append((levels or ["no -O"])[-1])
        found += [
            word
            for word in words
            if word not in levels and not USUAL.fullmatch(word) and not (by_spack and TARGET.fullmatch(word))
        ]
    return list(dict.fromkeys(found))


OFFICIAL = "official"  #: of a build: its source
#: Repositories of recipes: ours, and those of a mirror, which tells itself what it has replaced.
OWN_RECIPES = ("plumbline", "mirror_")
#: Files that are compiled into a benchmark.
COMPILED = (".c", ".h", ".cc", ".cpp", ".hpp", ".cxx")


@dataclass(frozen=True)
class OfferSources:
    """What the programs of an offer may be built from: the official source, and that with named patches."""

    official: OfficialSource
    folder: Path  #: of the offer
    named: tuple[Patch, ...]

    def locate(self, patch: Patch) -> Path:
        return self.folder / PATCHES / patch.file

    def list_patches(self, program: str) -> list[Path]:
        product = find_product(program)
        named = [self.locate(patch) for patch in self.named if patch.program == product]
        return [path for path in named if path.is_file()]

    @cached_property
    def patched(self) -> frozenset[str]:
        """The hashes of mpicost with each of its patches, and with all in their order."""
        every = tuple(self.list_patches(OWN_PROGRAM))
        choices = {(path,) for path in every} | {every}
        return frozenset(self.official.hash_patched(choice) for choice in choices) - {""}

    def list_digests(self, program: str) -> set[str]:
        """List the SHA-256 of the patches of a program."""
        paths = self.list_patches(program)
        return {hashlib.sha256(files.read_regular(path)).hexdigest() for path in paths}


def check_patches(sources: OfferSources) -> Iterator[Violation]:
    """Check that named patches are there, and change something that is compiled into their program."""
    for patch in sources.named:
        path, place = sources.locate(patch), f"{PATCHES}/{patch.file}"
        if not path.is_file():
            yield Violation(Code.PATCH_MISSING, place, "is not there")
            continue
        changed = list_changed_files(path)
        if changed is None:
            yield Violation(Code.PATCH_VOID, place, "is not a unified diff")
        elif not any(is_of_program(patch.program, name) for name in changed):
            yield Violation(Code.PATCH_VOID, place, f"changes no line of {patch.program}")


def is_of_program(program: str, name: str) -> bool:
    """Return whether a file that a patch changes is one of a program."""
    return name.startswith("suite/") if program in OWN_PROGRAMS else name.endswith(COMPILED)


def find_build(each: LaunchEvidence) -> BuiltBinary | None:
    """Find how the program of a launch was built; None if nothing tells."""
    try:
        return read_program(each.session, each.launch.environment, each.launch.program)
    except UsageError:
        return None


def is_by_spack(built: BuiltBinary) -> bool:
    return "/" in built.spec


@dataclass(frozen=True)
class SolvedParameters:
    """What Spack's lock file says of how a package was asked for."""

    commit: str = ""
    patches: tuple[str, ...] = ()  #: SHA-256 of each


@dataclass(frozen=True)
class SolvedPackage:
    """A package in Spack's lock file."""

    namespace: Text  #: of its recipe
    parameters: SolvedParameters
    patches: tuple[str, ...] = ()

    @property
    def applied(self) -> set[str]:
        """SHA-256 of the patches that its recipe has applied."""
        return {*self.patches, *self.parameters.patches}


def find_solution(each: LaunchEvidence, built: BuiltBinary) -> SolvedPackage | None:
    """Find what Spack's lock file says of a build; None if there is none, or it is of another build."""
    place = locate_program_file(each.session, each.launch.environment, each.launch.program)
    try:
        found = read_json(place.with_suffix(".lock"))["concrete_specs"]
        return parse_record(found[built.spec.partition("/")[2]], SolvedPackage)
    except (OSError, ValueError, LookupError, TypeError):
        return None


@dataclass(frozen=True)
class SourceChange:
    """How a source is not the official one, and whether it follows from the patches that are named."""

    text: str
    follows: bool | None = None  #: None where nobody can tell


def find_own_change(run: Mapping[str, Any], sources: OfferSources) -> SourceChange | None:
    """Find how the source of mpicost was changed; None if it is the official one."""
    told = run.get("source_hash", "")
    if told == sources.official.hash:
        return None
    text = f"{OWN_PROGRAM} of source {told or 'unknown'}"
    return SourceChange(text, told in sources.patched)


def find_change(each: LaunchEvidence, built: BuiltBinary, sources: OfferSources) -> SourceChange | None:
    """Find how the source of OSU or IMB was changed, as its build tells; None if nothing tells of a change."""
    program = each.launch.program
    if built.source != OFFICIAL:
        return SourceChange(f"{program} of source {built.source}")
    solved = find_solution(each, built) if is_by_spack(built) else None
    if solved is None:
        return None
    if not solved.namespace.startswith(OWN_RECIPES):
        return SourceChange(f"{program} by a recipe of {solved.namespace}")
    if solved.parameters.commit and solved.parameters.commit not in sources.official.commits:
        return SourceChange(f"{program} of commit {solved.parameters.commit}")
    if solved.applied:
        text = f"{program} with {plural(len(solved.applied), 'patch', 'es')} of its recipe"
        return SourceChange(text, solved.applied <= sources.list_digests(program))
    return None


def check_source(
    each: LaunchEvidence, records: Records, rules: Rules, sources: OfferSources
) -> Iterator[Violation]:
    """Check that the official source ran, or one that follows from patches that are named, kept and allowed."""
    program, category, built = each.launch.program, each.done.category, find_build(each)
    own = program in OWN_PROGRAMS
    if built is None and not own:
        return  # which is a violation of its own
    if built is None or own:
        change = find_own_change(records.run, sources)
    else:
        change = find_change(each, built, sources)
    once = f"{each.launch.environment}/{program}"
    if change is None:
        if not own and built and not is_by_spack(built) and not each.launch.exact:
            what = f"{program} was not built by Spack: nobody checked its source"
            yield Violation(Code.SOURCE_UNCHECKED, once, what)
    elif not sources.list_patches(program):
        yield Violation(Code.SOURCE_OTHER, each.place, f"{change.text}, not of the official one")
    elif not allows(rules, category, "patch"):
        yield Violation(Code.CHANGE_NOT_ALLOWED, each.place, f"{category} allows no patch")
    elif change.follows is None:
        what = f"{change.text}: nobody checked that it follows from the named patch"
        yield Violation(Code.SOURCE_UNCHECKED, once, what)
    elif not change.follows:
        what = f"{change.text}, which does not follow from the named patch"
        yield Violation(Code.PATCH_OTHER, each.place, what)


def allows(rules: Rules, name: str, change: Change) -> bool:
    category: Category | None = rules.category.get(name)
    return category is not None and change in category.allows


def check_flags(evidence: Sequence[LaunchEvidence], rules: Rules) -> Iterator[Violation]:
    """Check that programs were compiled as published, where their category does not allow other flags.

    Each is named once, with the first of its launches.
    """
    seen = set()
    for each in evidence:
        launch, category = each.launch, each.done.category
        if launch.exact or allows(rules, category, "flags"):
            continue
        if launch.program in OWN_PROGRAMS and not each.run:
            continue  # it ended without a record, so nothing of it counts
        built = find_build(each)
        own = each.run.get("compiler_flags") if launch.program in OWN_PROGRAMS else None
        flags = own or (built.flags if built else "")
        key = launch.environment, launch.program, category, flags
        if key in seen:
            continue
        seen.add(key)
        changed = find_changed_flags(launch.program, flags, bool(built and is_by_spack(built)))
        if changed is None:
            what = f"the flags of {launch.program} are not recorded, and {category} allows none"
            yield Violation(Code.FLAGS_UNCHECKED, each.place, what)
        elif changed:
            what = f"{launch.program} was built with {' '.join(changed)}; {category} allows no flags"
            yield Violation(Code.CHANGE_NOT_ALLOWED, each.place, what)


def check_builds(evidence: Sequence[LaunchEvidence]) -> Iterator[Violation]:
    """Check that each program tells how it was built, with Spack's lock file where Spack did."""
    seen = set()
    for each in evidence:
        key = each.done.session, each.launch.environment, each.launch.program
        if key in seen or each.launch.exact:
            continue
        seen.add(key)
        place = "/".join(key)
        built = find_build(each)
        if built is None:
            yield Violation(Code.BUILD_UNKNOWN, place, "how it was built is not recorded")
        elif is_by_spack(built) and find_solution(each, built) is None:
            what = f"Spack's lock file is not there, or has no {built.spec}"
            yield Violation(Code.BUILD_UNKNOWN, place, what)
