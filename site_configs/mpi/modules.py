"""Environment modules of MPIs: their names at sites, vendors and Spack, and what they set."""

import os
import re
import shutil
import subprocess
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from postprocess.base.grouping import group_pairs
from postprocess.base.processes import run_captured
from postprocess.base.sanitize import quote_word
from site_configs.families import FAMILIES
from site_configs.mpi.family import Unusable, join_lines
from site_configs.mpi.probe import Candidate, find_companion_launcher

MODULE = "module"  #: origin of an MPI from a module
MODULE_SECONDS = 30
MOST_WAYS = 3  #: most ways of loading a module behind others, besides the first
MOST_SAID = 300  #: characters that are quoted from the messages of a load
MARK = "plumbline: here it begins"  #: separates the output of the user's profile
#: Remains of a coloured listing: colours and links of a terminal.
COLOURS = re.compile(r"\x1b(\[[0-9;?]*[A-Za-z]|\][^\x07\x1b]*(\x07|\x1b\\))")
#: A line of ``module -t avail`` or ``spider``: a name, and additions in brackets of any kind: symbolic versions
#: ``(default:stable)``, tags ``<L>``, variants ``{+cuda}``, Lmod's ``[...]``.
LISTED = re.compile(r"(?P<name>[^\s(<{\[]+)\s*(?P<added>([(<{\[][^)>}\]]*[)>}\]]\s*)*)")
ALIAS = re.compile(r"\((@|[^)]*:@)|@\)")  #: alias of another module, which is listed too
KEY = "Key:"  #: before the legend of a listing
#: MPIs by the names that sites, vendors, Spack and EasyBuild give them.
FAMILY_NAMES = "|".join(
    [*(family.modules for family in FAMILIES.values() if family.modules), "parastation-?mpi", "psmpi"]
)
#: Before a plain ``mpi``: vendors and compilers, but not libraries that are built with an MPI.
VENDOR_NAMES = r"intel|oneapi|ibm|spectrum|platform|hpe|sgi|fujitsu|nvidia|nvhpc|bullx?|gcc\d*|gnu\d*"
MPI_NAME = re.compile(
    rf"(?:^|[/_.+-])(?:{FAMILY_NAMES})(?=[/_.+-]|$)"
    rf"|(?:^|/)(?:(?:{VENDOR_NAMES})[-_/])*(?:mpi|mpt|bullxmpi)(?=[/_.+-]|$)",
    re.I,
)
RESEMBLING = re.compile(r"mpi(?!l)|hpcx|mvapich", re.I)  #: what may be an MPI and is not a compiler
VERSION = re.compile(r"(^|[/_.+-])v?\d")  #: the beginning of a version behind a name
#: Parts of versions in their order; a pre-release sorts before its release.
VERSION_PARTS = re.compile(r"\d+|rc|alpha|beta|dev|pre", re.I)
OWN_VARIABLES = re.compile(  # of the shell and of the module system itself
    r"LOADEDMODULES|_LMFILES_|_ModuleTable|__|LMOD_|MODULE|BASH|SHLVL|PWD$|OLDPWD$|_$"
)
SPIDER_NEEDS = "You will need to load all module(s) on any one of the lines below"
MISSING_PREREQUISITE = re.compile(r"must be loaded first: (.+)")  #: the hint of Environment Modules
#: Prints a shell's variables without any program, because a module's variables might break one.
SHOW = r'for name in $(compgen -e); do printf "%s=%s\0" "$name" "${!name}"; done; printf "\0"'


class ModuleError(Exception):
    """The message of a module command, or why it did not end, in one line."""


@dataclass(frozen=True)
class ModuleListing:
    """The modules of a machine whose names resemble those of MPIs."""

    mpis: tuple[str, ...] = ()  #: MPIs that can be loaded directly
    hidden: tuple[str, ...] = ()  #: MPIs that need other modules first
    resembling: tuple[str, ...] = ()  #: with ``mpi`` in their names, but not known as MPIs
    problem: str = ""  #: why there is no listing


@dataclass(frozen=True)
class Said:
    """The result of a command of the module system."""

    code: int
    output: str
    errors: str

    @property
    def end(self) -> str:
        return join_lines(COLOURS.sub("", self.errors))[-MOST_SAID:]


def run_module_shell(command: str) -> Said:
    """Run a command in a login shell, which has ``module``.

    :raises ModuleError: if it cannot be started or does not end in time.
    """
    script = f'unset BASH_XTRACEFD; echo "{MARK}"; echo "{MARK}" >&2; {command}'
    try:
        done = run_captured(["bash", "-lc", script], os.environ, MODULE_SECONDS)
    except OSError as error:
        raise ModuleError(f"bash: {error.strerror}") from None
    except subprocess.TimeoutExpired:
        raise ModuleError(f"no answer within {MODULE_SECONDS} s") from None
    output, errors = (text.partition(f"{MARK}\n")[2] for text in (done.stdout, done.stderr))
    return Said(done.returncode, output, errors)


def has_modules(environment: Mapping[str, str]) -> bool:
    """Return whether a machine has a module system."""
    traces = ("MODULESHOME", "LMOD_CMD", "MODULES_CMD")
    return any(environment.get(name) for name in traces) and bool(shutil.which("bash"))


def read_module_path(modules: Sequence[str]) -> str:
    """Read the search path with these modules loaded; empty if they cannot be loaded."""
    names = " ".join(map(quote_word, modules))
    try:
        shell = run_module_shell(f'module load {names} >&2 && echo "$PATH"')
    except ModuleError:
        return ""
    return (shell.output.splitlines() or [""])[-1]


def parse_listing(text: str) -> list[str]:
    """Parse the output of ``module -t avail`` or ``spider`` into loadable names, aliases last.

    Headings, folders, the legend at the end and sentences are left out.
    """
    plain: list[str] = []
    aliases: list[str] = []
    for line in COLOURS.sub("", text.partition(f"\n{KEY}")[0]).splitlines():
        match = LISTED.fullmatch(line.strip())
        if match and not match["name"].endswith((":", "/")):
            (aliases if ALIAS.search(match["added"]) else plain).append(match["name"])
    return list(dict.fromkeys(plain + aliases))


def is_mpi_name(module: str) -> bool:
    """Return whether a module's name, not counting its version, is that of an MPI."""
    return find_mpi_name(module) is not None


def find_mpi_name(module: str) -> re.Match[str] | None:
    """Find the MPI in the name of a module before its version; a folder such as ``gcc/13`` may precede it."""
    for match in MPI_NAME.finditer(module):
        component = module[: match.end()].rpartition("/")[2]
        if not re.match(r"v?\d", component):
            return match
    return None


def list_modules() -> ModuleListing:
    """List the environment modules that are, or may be, MPIs by their names."""
    if not has_modules(os.environ):
        return ModuleListing()
    names, problem = read_listing("avail")
    others, other_problem = read_listing("spider") if os.environ.get("LMOD_CMD") else ([], "")
    hidden = [name for name in others if name not in names]
    return ModuleListing(
        tuple(filter(is_mpi_name, names)),
        tuple(filter(is_mpi_name, hidden)),
        tuple(filter(is_resembling, names + hidden)),
        "; ".join(filter(None, [problem, other_problem])),
    )


def read_listing(command: str) -> tuple[list[str], str]:
    """Read the names that a command of the module system lists, or why it failed."""
    try:
        shell = run_module_shell(f"module -t {command}")
    except ModuleError as error:
        return [], f"module -t {command}: {error}"
    if shell.code:
        return [], f"module -t {command}: {shell.end or f'exit code {shell.code}'}"
    return parse_listing(f"{shell.output}\n{shell.errors}"), ""


def is_resembling(module: str) -> bool:
    """Return whether a module may be an MPI under an unknown name."""
    return bool(RESEMBLING.search(module)) and not is_mpi_name(module)


def name_without_version(module: str) -> str:
    """Return a module's name without its version: ``openmpi+cuda`` of ``openmpi+cuda/5.0.7``."""
    match = find_mpi_name(module)
    start = match.end() if match else 0
    version = VERSION.search(module, start)
    return module[: version.start()] if version else module


def version_sort_key(module: str) -> list[int]:
    """Return a key that sorts versions: 4.10 after 4.9, 5.0 after 5.0rc1."""
    return [int(part) if part.isdigit() else -1 for part in VERSION_PARTS.findall(module)] + [0]


def group_modules(modules: Iterable[str]) -> list[list[str]]:
    """Group modules by MPI, the newest of each group first.

    Groups named after an MPI alone, with versions, come first: of two that bring one wrapper, the later is
    dropped.
    """
    groups = group_pairs((name_without_version(module), module) for module in modules)
    ordered = sorted(groups, key=lambda name: (find_mpi_start(name) > 0, groups[name] == [name]))
    return [sorted(groups[name], key=version_sort_key, reverse=True) for name in ordered]


def find_mpi_start(name: str) -> int:
    """Return where the MPI begins in the last part of a name: 5 in ``hdf5-openmpi``."""
    match = find_mpi_name(name)
    return match.start() - name.rfind("/", 0, match.end()) - 1 if match else 0


def find_in_modules() -> list[Candidate | Unusable]:
    """Find what each module brings whose name is that of an MPI."""
    return [find_in_module(module) for module in list_modules().mpis]


def list_needed_modules(module: str, said: str = "") -> list[list[str]]:
    """List what must be loaded before a module, from Lmod's ``spider`` or the message of a failed load.

    Each entry is an alternative; the newest comes first.
    """
    if match := MISSING_PREREQUISITE.search(said):
        names = match[1].split()
        return [[name] for name in names] if "at least one" in said else [names]
    if not os.environ.get("LMOD_CMD"):
        return []
    shell = run_module_shell(f"module spider {quote_word(module)} 2>&1")
    lines = COLOURS.sub("", shell.output.partition(SPIDER_NEEDS)[2]).splitlines()[1:]
    ways: list[list[str]] = []
    for line in filter(str.strip, lines):
        words = line.split()
        if words[0].endswith(":") or not all(LISTED.fullmatch(word) for word in words):
            break
        ways.append(words)
    return sorted(ways, key=lambda names: version_sort_key(" ".join(names)), reverse=True)


def find_in_module(module: str) -> Candidate | Unusable:
    """Find the wrapper that a module puts on PATH, with all variables that it sets; or why there is none.

    What the module needs is loaded before it, and belongs to the candidate.
    """
    try:
        ways = list_needed_modules(module) or [[]]
        candidate = load_module([*ways[0], module])
        if isinstance(candidate, str):
            more = ways[1:] if ways[0] else list_needed_modules(module, candidate)
            tried = (load_module([*way, module]) for way in more[:MOST_WAYS])
            candidate = next((loaded for loaded in tried if isinstance(loaded, Candidate)), candidate)
    except ModuleError as error:
        candidate = str(error)
    return Unusable(f"module {module}", MODULE, candidate) if isinstance(candidate, str) else candidate


def load_module(modules: Sequence[str]) -> Candidate | str:
    """Load modules in a login shell; return what they bring, or why that is not an MPI.

    The last module is unloaded first if the user's profile loads it, because it would change nothing then.

    :raises ModuleError: if the shell does not answer.
    """
    names = " ".join(map(quote_word, modules))
    last = quote_word(modules[-1])
    leave = f'case ":$LOADEDMODULES:" in *":"{last}":"*) module unload {last} >/dev/null 2>&1;; esac'
    shell = run_module_shell(f"{leave}; {SHOW}; module load {names} >&2 || exit; {SHOW}")
    shown = shell.output.split("\0\0")
    if len(shown) < 3:
        return f"it cannot be loaded: {shell.end or 'the load said nothing'}"
    old, new = (parse_variables(variables) for variables in shown[:2])
    mpicc = shutil.which("mpicc", path=new.get("PATH", ""))
    if not mpicc or mpicc == shutil.which("mpicc", path=old.get("PATH", "")):
        return "it puts no mpicc on the search path" + (f"; its load said: {shell.end}" if shell.end else "")
    env = tuple(
        (name, value)
        for name, value in new.items()
        if old.get(name) != value and "\n" not in value and not OWN_VARIABLES.match(name)
    )
    wrapper = Path(mpicc)
    launcher = find_companion_launcher(wrapper)
    return Candidate(wrapper, launcher, MODULE, module=" ".join(modules), env=env)


def parse_variables(shown: str) -> dict[str, str]:
    pairs = (entry.partition("=") for entry in shown.split("\0") if "=" in entry)
    return {name: value for name, _, value in pairs}
