"""What the pieces of a site file accept: a wrong value is refused in one line with its key."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reframe.utility import typecheck

from postprocess.cli import option_types
from postprocess.model.routines import mpicost
from site_configs.common import environment, partition, site
from site_configs.schema import fields
from site_configs.schema.fields import MOST_TRIALS, Defaults, Environment, Partition, Site
from site_configs.topology.layouts import Layout, Topology
from tests.support.request import ask

TOPOLOGY = Topology(4, nodes=2)
#: Anything that a site file may hold in the place of what is asked for.
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner),
    max_leaves=4,
)


def test_a_site_knows_the_caches_and_synchronisers_of_mpicost():
    assert (fields.CACHES, fields.SYNCS) == (mpicost.CACHES, mpicost.SYNCHRONISERS)


def an_environment(**changes: Any) -> dict[str, Any]:
    values = {"family": "mpich", "library": "MPICH Version: 5", "launcher": "srun"}
    return environment("mpich", **values | changes)


def in_container(**changes: Any) -> dict[str, Any]:
    return an_environment(container=["apptainer", "exec", "/mpi.sif"], **changes)


def a_partition(**changes: Any) -> dict[str, Any]:
    return partition("cpu", **{"topology": TOPOLOGY, "environments": ["mpich"]} | changes)


def a_site(**changes: Any) -> dict[str, Any]:
    return site("here", **{"description": "x", "partitions": [], "environments": []} | changes)


def with_default(**default: Any) -> dict[str, Any]:
    return a_partition(defaults=default)


def is_taken(**changes: Any) -> bool:
    """Whether a partition takes some values."""
    try:
        a_partition(**changes)
    except ValueError:
        return False
    return True


WRONG = [
    (an_environment, "accept", {"colour": "it is a fine one"}, "'colour': write one of mpi_library, cpu_model"),
    (a_partition, "accept", {"compiler": ""}, "compiler: '': write the reason"),
    (a_partition, "accept", {"compiler": None}, "compiler: None: write the reason, which"),
    (
        a_site,
        "accept",
        {"binding": "because\nof two"},
        "binding: 'because\\nof two': write the reason, which every session reports: one line",
    ),
    (a_site, "accept", {"trials": "as few as they are"}, "'trials': write one of mpi_library"),
    (a_site, "accept", ["compiler"], "['compiler']: write {'compiler': 'why"),
    (an_environment, "family", None, "None: write its name"),
    (an_environment, "library", None, "None: write name and version as MPI_Get_library_version"),
    (an_environment, "library", "", "'': write name and version as MPI_Get_library_version"),
    (an_environment, "library", " ", "' ': write name and version as MPI_Get_library_version"),
    (an_environment, "library", ".", "'.' would accept other MPIs; write name and version"),
    (an_environment, "library", "MPICH Version", "'MPICH Version' would accept other MPIs"),
    (an_environment, "launcher", " ", "' ': write a launcher of ReFrame's"),
    (an_environment, "launcher", [], "[]: write a launcher of ReFrame's"),
    (an_environment, "launcher", ["mpirun", " "], "['mpirun', ' ']: write a launcher"),
    (an_environment, "launcher", {"mpirun"}, "{'mpirun'}: write a launcher of ReFrame's"),
    (an_environment, "container", {"box"}, "{'box'}: write a list"),
    (an_environment, "container", ["box\0"], r"'box\x00': write a text of one line, in quotes"),
    (in_container, "prefix", "/opt/mpi", "Spack builds nothing in a container; leave one of the two out"),
    (in_container, "standard_abi", "/lib", "no program is built for it in a container; leave one of the two"),
    (an_environment, "mpicc", None, "None: write the name or path"),
    (an_environment, "modules", [None], "None: write letters, digits and _@%+=:,./- only"),
    (an_environment, "modules", "mpich", "'mpich': write a list"),
    (
        an_environment,
        "modules",
        ["mpich/4;touch F"],
        "'mpich/4;touch F': write letters, digits and _@%+=:,./- only",
    ),
    (a_partition, "access", ["--x\ntouch F"], r"'--x\ntouch F': write a text of one line"),
    (an_environment, "env_vars", {"A": None}, "A: None: write a text, in quotes"),
    (an_environment, "env_vars", {"A B": "1"}, "'A B': write letters, digits and _ only, a letter first"),
    (an_environment, "env_vars", [("A", "1")], "[('A', '1')]: write {'NAME': 'value'}"),
    (a_partition, "topology", 4, "4: write Topology(...)"),
    (a_partition, "environments", [3], "3: write a text of one line, in quotes"),
    (a_partition, "scheduler", None, "None: write the name of one of ReFrame's"),
    (a_partition, "access", [None], "None: write a text of one line, in quotes"),
    (a_partition, "max_jobs", 0, "0: write a whole number, 1 or more"),
    (a_partition, "max_jobs", True, "True: write a whole number, 1 or more"),
    (a_partition, "exact", "no", "'no': write True or False"),
    (a_partition, "shared_memory_bytes", -5, "-5: write a whole number, 0 or more"),
    (a_partition, "reference_days", 0, "0: write a whole number of days, 1 or more"),
    (a_partition, "session_gap_minutes", 0, "0: write a whole number of minutes, 1 or more"),
    (a_partition, "extras", 3, "3: write {'name': value}"),
    (a_partition, "extras", {"most_processes": "x"}, "'most_processes': follows from topology="),
    (a_partition, "extras", {"layouts": [[2, 2]]}, "'layouts': follows from layouts=; write that"),
    (a_partition, "environs", ["other"], "follows from environments=; write that"),
    (a_partition, "processor", {}, "follows from topology=; write that"),
    (a_partition, "layouts", [], "[]: write a list, as in [[8, 4], [8, 8]]; None for"),
    (a_partition, "layouts", 3, "3: write a list"),
    (a_partition, "layouts", [(2, 0)], "[2, 0]: write [processes, processes_per_node], 2 and 1"),
    (a_partition, "layouts", ["2x1"], "'2x1': write [processes, processes_per_node]"),
    (a_partition, "layouts", [(2.0, 2)], "[2.0, 2]: write [processes, processes_per_node]"),
    (a_partition, "layouts", [(1, 2)], "[1, 2]: write [processes, processes_per_node]"),
    (a_partition, "layouts", [(2, 3)], "[2, 3]: has more processes per node than processes"),
    (a_partition, "layouts", [(2, 2), [2, 2]], "[2, 2]: is there twice; write it once"),
    (a_partition, "defaults", [1], "[1]: write {'trials': 21}"),
    (with_default, "trials", 1, "1: write a whole number from 2 to 1,000,000; the first"),
    (with_default, "trials", MOST_TRIALS + 1, "1000001: write a whole number from 2"),
    (with_default, "cache", "hot", "'hot': write one of evict, flush, warm"),
    (with_default, "sync", ["window"], "['window']: write one of dissemination, barrier, window"),
    (with_default, "time_limit", "0s", "'0s': write more than nothing, as in '1h30m'"),
    (with_default, "time_limit", "soon", "'soon': write more than nothing"),
    (with_default, "max_pending_time", "0s", "'0s': write more than nothing"),
    (with_default, "peers", [-1], "-1: write a rank, 1 or more"),
    (with_default, "peers", 3, "3: write a list of ranks"),
    (with_default, "peers", [8, 99], "[8, 99]: are in no layout; write ranks below 8"),
    (with_default, "left_out_above", {"bcast": 0}, "bcast: 0: write a whole number, 1 or more"),
    (with_default, "left_out_above", {1: 2}, "1: write a text, in quotes"),
    (a_site, "description", None, "None: write a text, in quotes"),
    (a_site, "hostnames", ["("], "'(' is not a pattern (missing ), unterminated subpattern"),
    (a_site, "hostnames", ["a{9999999999}"], "'a{9999999999}' is not a pattern ("),
    (a_site, "hostnames", [None], "None: write a text of one line, in quotes"),
    (a_site, "modules_system", None, "None: write one of envmod, lmod, nomod, spack"),
]


@pytest.mark.parametrize(("piece", "key", "value", "said"), WRONG)
def test_a_wrong_value_is_refused_with_its_key_and_what_to_write(piece, key, value, said):
    with pytest.raises(ValueError) as refused:
        piece(**{key: value})
    title = {**dict.fromkeys((an_environment, in_container), "environment 'mpich'"), a_site: "site 'here'"}
    text = f"{title.get(piece, 'partition ' + repr('cpu'))}: "
    text += f"defaults: {key}: " if piece is with_default else f"{key}"
    assert str(refused.value).startswith(text), refused.value
    assert said in str(refused.value) and "\n" not in str(refused.value)


@pytest.mark.parametrize("value", [None, 3, "", "a b", "..", "a\nb", "5", [], True])
@pytest.mark.parametrize("piece", [an_environment, a_partition, a_site])
def test_a_name_is_one_that_reframe_takes(piece, value):
    title = {an_environment: environment, a_partition: partition, a_site: site}[piece]
    words = {an_environment: {"family": "mpich", "library": "MPICH 5", "launcher": "srun"},
             a_partition: {"topology": TOPOLOGY, "environments": []},
             a_site: {"description": "", "partitions": [], "environments": []}}[piece]  # fmt: skip
    with pytest.raises(ValueError, match=r": name: .*: write letters, digits, _ and - only"):
        title(value, **words)


PIECES = {an_environment: Environment, a_partition: Partition, with_default: Defaults, a_site: Site}


@given(st.data(), anything)
def test_whatever_is_written_is_taken_or_refused_as_a_value(data, value):
    """Nothing but a ValueError, which is a line of ``site check`` and no traceback."""
    piece = data.draw(st.sampled_from(list(PIECES)))
    not_values = ("name", "more", "partitions") + ("environments",) * (piece is a_site)
    names = [key for key in PIECES[piece].__struct_fields__ if key not in not_values]
    key = data.draw(st.sampled_from(names))
    try:
        piece(**{key: value})
    except ValueError as error:
        assert key in str(error)


@given(st.lists(st.tuples(st.integers(-2, 9), st.integers(-2, 9)), min_size=1, unique=True))
def test_layouts_are_taken_if_each_is_one(pairs):
    well = all(1 <= per_node <= processes >= 2 for processes, per_node in pairs)
    assert is_taken(layouts=[Layout(*pair) for pair in pairs]) == well


@given(st.from_regex(r"(\d{1,2}[dhms]?){0,4}", fullmatch=True) | st.floats() | st.integers())
def test_a_duration_is_what_reframe_takes_and_more_than_nothing(value):
    try:
        seconds = typecheck.Duration(value)
    except (ValueError, OverflowError):
        seconds = 0.0
    well = is_taken(defaults={"time_limit": value})
    assert not well or 0 < seconds < math.inf


@pytest.mark.parametrize("value", ["30s", "1h30m", "1d", "2d1h1m1s", 600, 0.5])
def test_a_duration_of_some_length_is_taken(value):
    assert with_default(time_limit=value)["extras"]["defaults"] == {"time_limit": value}


def test_what_a_partition_may_set_the_command_line_takes_too():
    assert option_types.MOST_TRIALS == MOST_TRIALS
    trials = {"trials": MOST_TRIALS, "cache": "warm", "sync": "window", "peers": [7, 99]}
    limits = {"left_out_above": {"scan_min": 1, "alltoall:1000": 4}, "time_limit": "1h"}
    assert with_default(**trials, **limits)["extras"]["defaults"] == trials | limits


def test_of_a_site_that_is_only_looked_at_no_version_is_asked(monkeypatch):
    ask(monkeypatch, only_looking=True)
    assert an_environment(library="SMPI Version ")["extras"]["library"] == "SMPI Version "
