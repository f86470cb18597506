"""What every check that runs mpicost shares: one launch measures a family of cases at one process count."""

import os
from collections.abc import Iterator
from pathlib import Path
from shlex import quote

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher
from reframe.core.builtins import (
    fixture,
    parameter,
    run_after,
    run_before,
    sanity_function,
    variable,
)
from reframe.core.exceptions import PerformanceError, SanityError
from reframe.core.runtime import runtime
from reframe.utility import typecheck as typ

from postprocess.bands import band, to_reframe
from postprocess.cases import Case
from postprocess.launches import assess
from postprocess.plan import PlannedLaunch, Skip, write_launch
from postprocess.reference_book import open_book
from postprocess.verdicts import Verdict
from reframe_checks.build import build_mpicost
from reframe_checks.choice import chosen, chosen_layouts, within
from reframe_checks.memory import shared_bytes
from site_configs.common import EnvironmentLauncher
from site_configs.ladder import Layout

SECONDS_PER_TRIAL = 0.1  #: allowed, not expected: far more than flushing a large cache takes
SECONDS_TO_START = 60  #: allowed likewise


def measured_layouts() -> list[str]:
    """Every layout that is measured on some partition of this site, as ``4x2``.

    :raises ValueError: if there is none, and nothing was asked for that could be named as missing.
    """
    parts = runtime().system.partitions
    found = sorted({layout for part in parts for layout in chosen_layouts(part.name, part.extras)})
    if not found and not any(part.extras["layouts"] for part in parts):
        fix = "choose --processes, perhaps with --oversubscribe"
        raise ValueError(f"one core is too few for any process count of the ladder: {fix}")
    nowhere = "1x1"  # a parameter must have a value; no partition measures this one
    return [str(layout) for layout in found] or [nowhere]


class MpicostCheck(rfm.RunOnlyRegressionTest):
    """A family of routines, each at its sizes, in one launch. A subclass names the family in ``table``.

    Each case is one performance variable, in seconds, which ReFrame asserts against the reference of
    its machine. A result that is not whole and right fails before any speed is looked at.
    """

    #: The family: the sizes in bytes at which each routine is measured; ``[0]`` for no payload.
    #:
    #: :required: yes, by the family's check
    table = variable(typ.Dict[str, typ.List[int]])

    #: Measure these routines only; the whole family if empty.
    #:
    #: :default: ``[]``
    routines = variable(typ.List[str], value=chosen("routines", []))

    #: The most processes at which a routine is measured (``{"scan_min": 32}``), or a routine at one size
    #: (``{"alltoall:1000": 32}``), unless routines are asked for by name; without a limit if not in it.
    #:
    #: :default: ``{}``
    left_out_above = variable(typ.Dict[str, int], value={})

    #: Measure these sizes (bytes, multiples of 8) in the place of the family's own; its own if empty.
    #:
    #: :default: ``[]``
    sizes = variable(typ.List[int], value=chosen("sizes", []))

    #: Timed calls per case, of which the first is dropped.
    #:
    #: :default: ``51``, as in the papers
    trials = variable(int, value=chosen("trials", 51))

    #: ``flush`` the caches before each trial, or leave them ``warm``.
    #:
    #: :default: ``flush``, as in the papers
    cache = variable(str, value=chosen("cache", "flush"))

    #: What starts the processes of a trial together: ``dissemination``, ``barrier`` or ``window``.
    #:
    #: :default: ``dissemination``, which is the same algorithm with every MPI
    sync = variable(str, value=chosen("sync", "dissemination"))

    #: Partners of rank 0 in ping-pong, one after the other; every other process if empty.
    #:
    #: :default: ``[]``, as in the papers
    peers = variable(typ.List[int], value=chosen("peers", []))

    #: Fail a case that has no reference, instead of leaving it unasserted.
    #:
    #: :default: ``False``
    strict = variable(bool, value=chosen("strict", False))

    #: Directories in which references are looked for, the first one first.
    #:
    #: :default: those in ``PLUMBLINE_REFERENCES``, else ``reference_data``
    reference_roots = variable(
        typ.List[str],
        value=os.environ.get("PLUMBLINE_REFERENCES", "reference_data").split(os.pathsep),
    )

    #: Processes of the launch and processes per node: the layouts of the site's partitions, or a choice
    #: from outside.
    layout = parameter(measured_layouts())

    mpicost = fixture(build_mpicost, scope="environment")
    valid_prog_environs = ["+mpi"]
    maintainers = ["plumbline"]
    tags = {"nightly"}

    @run_after("init")
    def look_at_table(self):
        """A routine without a size would be measured nowhere, and nobody would notice."""
        if not self.table or not all(self.table.values()):
            raise ValueError("table: give every routine of the family a size, [0] for no payload")

    @run_after("init")
    def choose_partitions(self):
        """Run where the layout is measured. A family of which nothing was chosen runs nowhere."""
        self.processes, self.num_tasks_per_node = map(int, self.layout.split("x"))
        self.num_tasks = self.processes
        self.valid_systems = [
            part.fullname
            for part in runtime().system.partitions
            if any(self.partners(routine) for routine in self.chosen_routines())
            and Layout(self.processes, self.num_tasks_per_node)
            in chosen_layouts(part.name, part.extras)
        ]

    @run_after("setup")
    def take_defaults_of_partition(self):
        """What the site says of a variable holds unless the user says otherwise."""
        for name, value in self.current_partition.extras["defaults"].items():
            setattr(self, name, chosen(name, value))

    @run_after("setup")
    def limit_time(self):
        """Give every launch an end, unless the user gave one."""
        self.time_limit = chosen("time_limit", self.time_limit)
        if self.time_limit is None:
            cases = len(list(self.all_cases()))
            self.time_limit = f"{SECONDS_TO_START + int(cases * self.trials * SECONDS_PER_TRIAL)}s"

    @run_after("setup")
    def plan_launch(self):
        """Write down what this launch will measure: what is planned and does not come is seen."""
        extras = self.current_partition.extras
        self.session = Path(os.environ.get("PLUMBLINE_SESSION", self.stagedir))
        cases = list(self.all_cases())
        skips = [skip for case in cases if (skip := self.too_large(case))]
        skipped = {skip.case for skip in skips}
        self.launch = PlannedLaunch(
            test=self.unique_name,
            partition=self.current_partition.fullname,
            environment=self.current_environ.name,
            program="mpicost",
            library=self.current_environ.extras["library"],
            number=getattr(self, ".repeat_no", 0) + 1,
            trials=self.trials,
            time_limit=float(self.time_limit),
            exact=extras["exact"],
            cases=tuple(case for case in cases if case not in skipped),
            skips=tuple(skips),
        )
        write_launch(self.session, self.launch)
        self.skip_if(not self.launch.cases, "no case fits into this machine's memory")

    def too_large(self, case: Case) -> Skip | None:
        """Why a case is left out: simulated processes share the memory of one real machine."""
        limit = self.current_partition.extras["shared_memory_bytes"]
        needed = shared_bytes(case.routine, case.processes, case.bytes)
        if not limit or needed <= limit:
            return None
        sizes = f"{needed / 1e9:.3g} GB, and the simulated processes share {limit / 1e9:.3g} GB"
        return Skip(case, f"it needs {sizes} (shared_memory_bytes of the partition)")

    @run_after("setup")
    def choose_launcher(self):
        """The launcher belongs to the MPI, not to the partition."""
        launcher = self.current_environ.extras["launcher"]
        if isinstance(launcher, str):
            self.job.launcher = getlauncher(launcher)()
        else:
            self.job.launcher = EnvironmentLauncher(launcher)

    @run_before("run")
    def set_command(self):
        """The exit code is written down on the node: not every scheduler tells it."""
        records, ending = (
            quote(str(file(self.session))) for file in (self.launch.records, self.launch.ending)
        )
        self.executable = quote(str(getattr(self.mpicost, "program", "mpicost")))
        self.executable_opts = [
            f"--routine={self.routines_and_sizes()}",
            f"--trials={self.trials}",
            f"--cache={self.cache}",
            f"--sync={self.sync}",
            f"--output={records}",
        ]
        if self.launch.exact:  # the order of the cases can matter, and must repeat with the time
            self.executable_opts.append(f"--seed={self.launch.number}")
        peers = self.chosen_peers()
        if peers and any(case.peer for case in self.launch.cases):
            self.executable_opts.append(f"--peers={','.join(map(str, peers))}")
        self.postrun_cmds = ["code=$?", f"echo $code > {ending}", "exit $code"]

    @sanity_function
    def whole_and_right(self):
        """Exit code, end record, the MPI and the world asked for, every case, verified data."""
        outcome = assess(self.launch, self.session)
        if outcome.verdict is not None:
            raise SanityError(f"{outcome.verdict}: {outcome.reason}")
        proof = self.current_environ.extras.get("proof", "")
        if proof not in Path(str(self.stderr)).read_text(errors="replace"):
            raise SanityError(f"{Verdict.INCORRECT}: nothing on standard error says {proof!r}")
        self.records = outcome.records
        return True

    @run_before("performance")
    def set_references(self):
        """Each case becomes a variable, and ReFrame is given its band if it has a comparable one."""
        if self.is_dry_run():
            return
        headlines = {record.variable: record.summary.headline for record in self.records.cases}
        self.perf_variables = {
            name: sn.make_performance_function(sn.defer(value), "s")
            for name, value in headlines.items()
        }
        self.reference = {self.current_partition.fullname: self.bands()}

    @run_after("performance")
    def demand_references(self):
        """In a strict session a case without a reference fails; the others are asserted all the same."""
        missing = self.perf_variables.keys() - self.reference.get(
            self.current_partition.fullname, {}
        )
        if self.strict and missing and not self.is_dry_run():
            raise PerformanceError(f"no reference for {', '.join(sorted(missing))}")

    def bands(self) -> dict[str, tuple]:
        """ReFrame's reference tuple of each case that has a comparable reference."""
        place = (self.current_partition.fullname, self.current_environ.name)
        shelf = open_book([Path(root) for root in self.reference_roots], [place]).shelves.get(place)
        if shelf is None or shelf.difference(self.records.run, self.launch.exact):
            return {}
        known = [shelf.references[case] for case in self.launch.cases if case in shelf.references]
        fastest = {each.variable: each.summary.minimum for each in self.records.cases}
        tuples = {}
        for each in known:
            limits = band(each, self.records.resolution)
            tuples[each.case.variable] = to_reframe(each, limits, fastest[each.case.variable])
        return tuples

    def chosen_routines(self) -> list[str]:
        """The routines of the family that are measured."""
        return [routine for routine in self.table if not self.routines or routine in self.routines]

    def chosen_peers(self) -> list[int]:
        """The partners that were chosen, as far as there are so many processes; empty for all."""
        return [peer for peer in self.peers if peer < self.processes]

    def partners(self, routine: str) -> list[int]:
        """The partners with which a routine is measured: of ping-pong, other processes in turn."""
        if routine != "pingpong":
            return [0]
        return list(range(1, self.processes)) if not self.peers else self.chosen_peers()

    def chosen_sizes(self, routine: str) -> list[int]:
        """The sizes at which a routine of the family is measured."""
        own = self.table[routine]
        sizes = own if own == [0] else self.sizes or own
        limits = {} if self.routines else self.left_out_above
        return [size for size in sizes if within(limits, routine, size, self.processes)]

    def all_cases(self) -> Iterator[Case]:
        """The cases of this launch and those that are skipped.

        They follow from the declaration alone, and never from what a program printed.
        """
        for routine in self.chosen_routines():
            for size in self.chosen_sizes(routine):
                yield from (self.case(routine, peer, size) for peer in self.partners(routine))

    def case(self, routine: str, peer: int, size: int) -> Case:
        """One case of this launch."""
        return Case(
            system=self.current_system.name,
            partition=self.current_partition.name,
            environment=self.current_environ.name,
            program="mpicost",
            routine=routine,
            peer=peer,
            cache=self.cache,
            sync=self.sync,
            processes=self.processes,
            per_node=self.num_tasks_per_node,
            bytes=size,
        )

    def routines_and_sizes(self) -> str:
        """The launch's cases as mpicost is told them: ``bcast:8:10000,barrier``."""
        sizes: dict[str, list[int]] = {}
        for case in self.launch.cases:
            if case.bytes not in sizes.setdefault(case.routine, []):
                sizes[case.routine].append(case.bytes)
        return ",".join(
            ":".join([routine, *map(str, filter(None, chosen))])
            for routine, chosen in sizes.items()
        )
