"""What the pieces of a site file accept. Each wrong value is one text: its key, and what to write there.

A value of the wrong kind must not get further: a launch would fail at night, or less be measured than the
site file says.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from postprocess.base.sanitize import quote_word
from site_configs.programs import installed
from site_configs.topology.layouts import Topology

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")  #: what ReFrame takes for a name
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")  #: what a shell takes for a name
DURATION = re.compile(  #: as ReFrame reads it, which takes digits of every script
    r"(?=.)(\d{1,9}d)?(\d{1,9}h)?(\d{1,9}m)?(\d{1,9}s)?", re.ASCII
)
MODULES_SYSTEMS = ("envmod", "lmod", "nomod", "spack")  #: that ReFrame knows
CACHES = ("evict", "flush", "warm")
SYNCS = ("dissemination", "barrier", "window", "loop")
SESSION_GAP_MINUTES = 20  #: between launches of two sessions, unless a partition says otherwise
REFERENCE_DAYS = 180  #: half a year: most machines have had an update by then
#: Tells what a launch in simulated time was simulated on; times on another platform are not comparable.
PLATFORM_HASH = "SMPI_PLATFORM_HASH"
MOST_TRIALS = 1_000_000  #: as mpicost has it
MOST_ROUNDS = 1000  #: the same
#: Keys of a partition and of its extras that ``partition`` fills itself, and the arguments they follow from.
FOLLOW_FROM = {
    "environs": "environments",
    "processor": "topology",
    "most_processes": "topology",
    "cores_per_node": "topology",
    "nodes": "topology",
    "layouts": "layouts",
    "defaults": "defaults",
    "exact": "exact",
    "shared_memory_bytes": "shared_memory_bytes",
    "accept": "accept",
    "reference_days": "reference_days",
    "session_gap_minutes": "session_gap_minutes",
}


def is_text(value: Any) -> bool:
    """Return whether a value is a text that is not empty."""
    return isinstance(value, str) and bool(value.strip())


def is_number(value: Any, least: int) -> bool:
    """Return whether a value is a whole number of ``least`` or more. True and False are none."""
    return isinstance(value, int) and not isinstance(value, bool) and value >= least


def check_time(key: str, value: Any, unit: str) -> Iterator[str]:
    """Yield what is wrong with a number of days or minutes: it must be one or more."""
    if not is_number(value, 1):
        yield f"{key}: {value!r}: write a whole number of {unit}, 1 or more"


def check_name(value: Any) -> Iterator[str]:
    """Yield what is wrong with a name, which ReFrame must accept."""
    if not isinstance(value, str) or not NAME.fullmatch(value):
        yield "name: write letters, digits, _ and - only, a letter first"


def check_texts(key: str, values: Any) -> Iterator[str]:
    """Yield what is wrong with a list of texts."""
    if not isinstance(values, list | tuple):
        yield f"{key}: {values!r}: write a list"
    else:
        wrong = [each for each in values if not is_text(each)]
        yield from (f"{key}: {each!r}: write a text, in quotes" for each in wrong)
        lines = [each for each in values if is_text(each) and len(each.splitlines()) > 1]
        yield from (f"{key}: {each!r}: write one line" for each in lines)


def check_modules(values: Any) -> Iterator[str]:
    """Yield what is wrong with names of modules, which ReFrame writes into a script as they are."""
    wrong = list(check_texts("modules", values))
    yield from wrong
    for each in [] if wrong else values:
        if quote_word(each) != each:
            fix = "write letters, digits and _@%+=:,./- only"
            yield f"modules: {each!r}: is more than a name to a shell; {fix}"


def check_environment(
    *,
    family: Any,
    library: Any,
    launcher: Any,
    mpicc: Any,
    modules: Any,
    env_vars: Any,
    prefix: Any,
    programs: Any,
) -> Iterator[str]:
    """Yield what is wrong with the values of an environment."""
    if not is_text(family):
        yield f"family: {family!r}: write its name, as in 'mpich'"
    if not isinstance(library, str):
        yield f"library: {library!r}: write what MPI_Get_library_version says, in quotes"
    elif not library.strip():
        yield "library: is empty, and would accept every MPI"
    words = launcher if isinstance(launcher, list | tuple) else [launcher]
    if not words or not all(map(is_text, words)):
        fix = "write a launcher of ReFrame's, as in 'srun', or a list of words, as in ['mpiexec']"
        yield f"launcher: {launcher!r}: {fix}"
    if not is_text(mpicc):
        yield f"mpicc: {mpicc!r}: write the name or path of the compiler wrapper"
    yield from check_modules(modules)
    yield from check_variables(env_vars)
    if prefix != "" and not (isinstance(prefix, str) and prefix.startswith("/")):
        yield f"prefix: {prefix!r}: write an absolute path, as in '/opt/openmpi-5.0'"
    yield from installed.find_program_faults(programs)


def check_library_text(library: str) -> Iterator[str]:
    """Yield what is wrong with the library text: without name and version it matches nearly every MPI."""
    if not re.search(r"[A-Za-z]{2}", library) or not re.search(r"\d", library):
        fix = "write name and version as MPI_Get_library_version says them"
        yield f"library: {library!r} would accept other MPIs; {fix}"


def check_variables(values: Any) -> Iterator[str]:
    """Yield what is wrong with names and values of environment variables."""
    if not isinstance(values, Mapping):
        yield f"env_vars: {values!r}: write {{'NAME': 'value'}}"
        return
    for key, value in values.items():
        if not isinstance(key, str) or not VARIABLE.fullmatch(key):
            yield f"env_vars: {key!r}: is no name of a variable"
        elif not isinstance(value, str):
            yield f"env_vars: {key}: {value!r}: write a text, in quotes"


def check_partition(
    *,
    topology: Any,
    environments: Any,
    scheduler: Any,
    access: Any,
    max_jobs: Any,
    exact: Any,
    shared_memory_bytes: Any,
    more: Mapping[str, Any],
) -> Iterator[str]:
    """Yield what is wrong with the values of a partition, but for its layouts and defaults."""
    if not isinstance(topology, Topology):
        yield f"topology: {topology!r}: write Topology(...)"
    yield from check_texts("environments", environments)
    if not is_text(scheduler):
        yield f"scheduler: {scheduler!r}: write the name of one of ReFrame's, as in 'local'"
    yield from check_texts("access", access)
    if not is_number(max_jobs, 1):
        yield f"max_jobs: {max_jobs!r}: write a whole number, 1 or more"
    if not isinstance(exact, bool):
        yield f"exact: {exact!r}: write True or False"
    if not is_number(shared_memory_bytes, 0):
        yield f"shared_memory_bytes: {shared_memory_bytes!r}: write a whole number, 0 or more"
    extras = more.get("extras", {})
    if not isinstance(extras, Mapping):
        yield f"extras: {extras!r}: write {{'name': value}}"
        extras = {}
    own = {f"extras: {key!r}": FOLLOW_FROM[key] for key in extras if key in FOLLOW_FROM}
    own |= {f"{key}": FOLLOW_FROM[key] for key in more if key in FOLLOW_FROM}
    yield from (f"{key}: follows from {word}=; write that" for key, word in own.items())


def check_layouts(values: Any) -> Iterator[str]:
    """Yield what is wrong with layouts: two processes or more, and at most as many per node."""
    if not isinstance(values, list | tuple) or not values:
        yield f"layouts: {values!r}: write a list, as in [[8, 4], [8, 8]]; None for the topology's"
        return
    for number, layout in enumerate(values):
        shown = list(layout) if isinstance(layout, tuple) else layout
        pair = layout if isinstance(layout, list | tuple) and len(layout) == 2 else (0, 0)
        if not is_number(pair[0], 2) or not is_number(pair[1], 1):
            yield f"layouts: {shown!r}: write [processes, processes_per_node], 2 and 1 or more"
        elif pair[1] > pair[0]:
            fix = f"write [{pair[0]}, {pair[0]}] at most"
            yield f"layouts: {shown!r}: has more processes per node than processes; {fix}"
        elif tuple(pair) in [tuple(each) for each in values[:number]]:
            yield f"layouts: {shown!r}: is there twice; write it once"


def check_defaults(values: Any, layouts: Sequence[Sequence[int]]) -> Iterator[str]:
    """Yield what is wrong with values of the checks' variables on a partition with these layouts."""
    if not isinstance(values, Mapping):
        yield f"defaults: {values!r}: write {{'trials': 21}}"
        return
    for variable, value in values.items():
        if variable not in DEFAULTS:
            yield f"defaults: {variable!r}: choose from {', '.join(DEFAULTS)}"
        elif fix := DEFAULTS[variable](value):
            yield f"defaults: {variable}: {value!r}: {fix}"
    most = max((processes for processes, _ in layouts), default=0)
    peers = values.get("peers") or []
    if most and peers and not check_peers(peers) and min(peers) >= most:
        fix = f"write ranks below {most}, the most processes of a layout"
        yield f"defaults: peers: {peers!r}: are in no layout; {fix}"


def check_trials(value: Any) -> str:
    """Describe what is wrong with a number of trials; empty if nothing is."""
    well = is_number(value, 2) and value <= MOST_TRIALS
    fix = f"write a whole number from 2 to {MOST_TRIALS:,}; the first trial is dropped"
    return "" if well else fix


def check_rounds(value: Any) -> str:
    """Describe what is wrong with a number of rounds; empty if nothing is."""
    well = is_number(value, 1) and value <= MOST_ROUNDS
    return "" if well else f"write a whole number from 1 to {MOST_ROUNDS:,}"


def check_seconds(value: Any) -> str:
    """Find what is wrong with a number of seconds."""
    return "" if is_number(value, 1) else "write a whole number of seconds, 1 or more"


def check_duration(value: Any) -> str:
    """Describe what is wrong with a duration. Zero is: ReFrame takes it for no limit."""
    if isinstance(value, str):
        well = bool(DURATION.fullmatch(value)) and any(digit in value for digit in "123456789")
    else:
        number = isinstance(value, int | float) and not isinstance(value, bool)
        well = number and 0 < value < math.inf
    return "" if well else "write more than nothing, as in '1h30m' or '600s'"


def check_peers(value: Any) -> str:
    """Describe what is wrong with partners in ping-pong; empty if nothing is."""
    well = isinstance(value, list | tuple) and all(is_number(each, 1) for each in value)
    return "" if well else "write a list of ranks, 1 or more each; [] for all"


def check_limits(value: Any) -> str:
    """Describe what is wrong with limits on processes. The checks know which routines there are."""
    well = isinstance(value, Mapping) and all(
        is_text(key) and is_number(limit, 1) for key, limit in value.items()
    )
    return "" if well else "write {'scan_min': 32}, the most processes, 1 or more, by routine"


def check_choice(value: Any, choice: Sequence[str]) -> str:
    """Describe what is wrong with a word of a closed list; empty if nothing is."""
    return "" if value in choice else f"choose from {', '.join(choice)}"


#: Variables of the checks that a partition may set, and what is wrong with a value of each.
DEFAULTS = {
    "trials": check_trials,
    "trial_rounds": check_rounds,
    "cache": lambda value: check_choice(value, CACHES),
    "sync": lambda value: check_choice(value, SYNCS),
    "peers": check_peers,
    "left_out_above": check_limits,
    "seconds_per_layout": check_seconds,
    "time_limit": check_duration,
    "max_pending_time": check_duration,
}


def check_site(*, description: Any, hostnames: Any, modules_system: Any) -> Iterator[str]:
    """Yield what is wrong with the values of a site, but for its partitions and environments."""
    if not isinstance(description, str):
        yield f"description: {description!r}: write a text, in quotes"
    yield from check_patterns(hostnames)
    if modules_system not in MODULES_SYSTEMS:
        yield f"modules_system: {modules_system!r}: choose from {', '.join(MODULES_SYSTEMS)}"


def check_patterns(hostnames: Any) -> Iterator[str]:
    """Yield what is wrong with patterns of host names."""
    wrong = list(check_texts("hostnames", hostnames))
    yield from wrong
    for pattern in [] if wrong else hostnames:
        try:
            re.compile(pattern)
        except (re.error, OverflowError, RecursionError) as error:
            fix = r"write a regular expression, as in r'login\d+'"
            yield f"hostnames: {pattern!r} is no pattern ({error}); {fix}"
