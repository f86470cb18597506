"""What all checks share: one job per program, environment and layout, with one or several starts."""

import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from types import MappingProxyType
from typing import Any, TypeVar

import reframe as rfm
import reframe.utility.sanity as sn
from reframe.core.backends import getlauncher
from reframe.core.builtins import fixture, loggable, parameter, run_after, run_before, sanity_function, variable
from reframe.core.exceptions import PerformanceError, SanityError
from reframe.core.runtime import runtime
from reframe.utility import typecheck as typ

from postprocess.base.files import read_text
from postprocess.base.sanitize import quote_word
from postprocess.judging.outcome import assess_launch
from postprocess.judging.retest_targets import (
    RetestTarget,
    list_avoided_nodes,
    list_wanted_nodes,
    select_targets,
)
from postprocess.model import options
from postprocess.model.case import Case, LaunchPlace
from postprocess.model.launch import LaunchOutcome, select_places
from postprocess.model.plan import PlannedLaunch, choose_token, write_launch
from postprocess.model.verdict import Verdict
from reframe_checks.common.build import build_mpicost
from reframe_checks.common.known_bands import find_bands, find_shown_scale
from reframe_checks.common.layouts import list_layouts_on, list_measured_layouts
from reframe_checks.common.mpi_support import find_chosen_launcher, find_usual_launcher, list_mpi_environments
from reframe_checks.common.selection_guard import guard_selection, note_case
from reframe_checks.common.user_options import is_in_session, list_reference_roots, read_choice, resolve
from site_configs.common import EnvironmentLauncher
from site_configs.schedulers.registry import find_scheduler
from site_configs.schema.facts import EnvironmentFacts, PartitionFacts
from site_configs.schema.reframe_request import current_request
from site_configs.schema.variables import SESSION
from site_configs.schema.waivers import collect_waivers
from site_configs.topology.layouts import Layout
from site_configs.topology.machine import is_within_limits, read_quota_cpus, write_limits_command

if not is_in_session():
    guard_selection()
SECONDS_TO_START = 60  #: allowed, not expected


def has_definition(check: type, name: str) -> bool:
    """Return whether a ReFrame class under construction has an attribute, or a variable with a value."""
    for ancestor in check.__mro__:
        attributes = vars(ancestor)
        variables = attributes.get("_rfm_var_space", attributes.get("_rfm_local_var_space", {}))
        if name in attributes or (name in variables and variables[name].is_defined()):
            return True
    return False


def count_nodes(check) -> int:
    return len(Layout(check.processes, check.num_tasks_per_node).ranks_per_host)


_Facts = TypeVar("_Facts")
_READ: dict[int, tuple[object, Any]] = {}  #: facts that were read, each with what they are of


def read_facts_once(read: Callable[[Any], _Facts], of: Any) -> _Facts:
    """Read the facts of a partition or environment of ReFrame, which stay the same while it runs.

    A dry run of a large cluster asks for them 57,000 times, which was a sixth of its time.
    """
    if id(of) not in _READ:
        _READ[id(of)] = (of, read(of))  # as long as it is here, nothing else has its id
    return _READ[id(of)][1]


class LaunchCheck(rfm.RunOnlyRegressionTest):
    """The cases of one program in one job. A subclass says what it measures and how it is started.

    Each case is one performance variable, which ReFrame asserts against the reference of its machine. A result
    that is not complete and correct fails before its speed is checked.

    What a subclass must define, and when:

    - Class: ``program``.
    - Class: ``site_variables``, the variables that a site may set on a partition (``defaults``).
    - Class: ``measures_on(part)``, whether anything is measured on a partition, called in the init phase.
    - Class: ``planned_launches()``, the starts of a job, called in the setup phase.
    - Class: what ``must_define`` of its family names in addition.
    - Run phase, before the job is written: ``executable``, ``executable_opts`` and the lines around them, so
      that each start of ``started()`` leaves its ``records`` and its ``ending``.

    A missing definition is an error when the class is made. A family, from which checks are derived but which
    is not a check itself, declares that: ``class MpicostCheck(LaunchCheck, family=True)``.

    :raises TypeError: for a class that is not a family and lacks a definition.
    """

    #: What every check finally has, from itself or its family.
    must_define: tuple[str, ...] = ("program", "site_variables", "measures_on", "planned_launches")

    @classmethod
    def __init_subclass__(cls, *, family: bool = False, **kwargs):
        super().__init_subclass__(**kwargs)
        lacking = [] if family else [name for name in cls.must_define if not has_definition(cls, name)]
        if lacking:
            fix = "see the docstring of LaunchCheck, or say family=True if it is not a check itself"
            raise TypeError(f"check {cls.__name__}: {', '.join(lacking)}: not defined; {fix}")

    #: Name of the program in every case: ``mpicost``.
    #:
    #: :required: yes
    program = variable(str)

    #: The family of a check that is measured only if the user asks for it, and then alone.
    family = ""

    #: Fail a case that has no comparable reference, instead of leaving it unasserted.
    #:
    #: :default: ``True``, since ReFrame alone would pass it; ``False`` in a session of ``./plumbline``, which
    #:     gives such a case its own verdict
    strict = variable(typ.Bool, value=read_choice(options.STRICT.variable, not is_in_session()))

    #: Directories with references, in order of precedence: ``["mine", "reference_data"]``.
    #:
    #: :default: those of the session's request, else ``reference_data`` beside the checks and the provisional
    #:     ones in the work directory
    reference_roots = variable(typ.List[str], value=list_reference_roots())

    #: Processes of the launch and processes per node, as ``4x2``.
    #:
    #: :values: the layouts of the site's partitions, or a choice from outside
    layout = parameter(list_measured_layouts())

    mpicost = fixture(build_mpicost, scope="environment")
    set_by_setvar: frozenset[str] = (
        frozenset()
    )  #: variables that ``--setvar`` of ReFrame's command line has set
    completed: Mapping[str, Sequence[Any]] = MappingProxyType({})  #: the result of ``perfvalues``
    valid_prog_environs = list_mpi_environments()
    #: Files for a later look at the results; ReFrame removes the stage directory of a passed test.
    keep_files = [] if is_in_session() else ["plan", "raw"]
    maintainers = ["plumbline"]
    tags = {"nightly"}

    @property
    def facts(self) -> PartitionFacts:
        """The site's facts of the partition that the job runs on."""
        return read_facts_once(PartitionFacts.of_partition, self.current_partition)

    @property
    def environment_facts(self) -> EnvironmentFacts:
        """The facts of the MPI that the job runs on."""
        return read_facts_once(EnvironmentFacts.of, self.current_environ)

    @run_after("init")
    def choose_partitions(self):
        """Select the partitions that measure the layout; none if nothing of the check was chosen."""
        self.processes, self.num_tasks_per_node = map(int, self.layout.split("x"))
        self.num_tasks = self.processes
        programs = read_choice(options.PROGRAM.variable, [])
        wanted = not programs or self.program in programs
        wanted = wanted and self.family == read_choice(options.FAMILY, "")
        if read_choice(options.AGAIN, None) is not None:
            retest_targets = self.retest_targets()
            self.valid_prog_environs = sorted({target.environment for target in retest_targets})
            wanted = wanted and bool(retest_targets)
        beyond = self.number > 1 and read_choice(options.LAUNCHES, None) is not None
        places = self.places_of_number() if beyond else []
        if beyond:
            there = {place.environment for place in places}
            environments = {*self.valid_prog_environs} & there if self.retest_targets() else there
            self.valid_prog_environs = sorted(environments)
        self.valid_systems = [
            part.fullname
            for part in runtime().system.partitions
            if wanted
            and (not beyond or part.fullname in {place.partition for place in places})
            and (read_choice(options.AGAIN, None) is None or self.retest_targets(partition=part.name))
            and self.measures_on(part)
            and Layout(self.processes, self.num_tasks_per_node) in self.layouts_on(part)
        ]
        if wanted and not is_in_session():
            self.note_choices()

    def layouts_on(self, part) -> list[Layout]:
        return list_layouts_on(part)

    def note_choices(self) -> None:
        """Record what the user of plain ReFrame chose, and whether it is here, for a family with choices."""

    @run_after("setup")
    def check_cores(self):
        """Refuse a partition whose cores neither the site nor ReFrame knows."""
        note_case(self.unique_name)
        if not self.facts.cores_per_node:
            fix = "write num_cpus and num_cpus_per_core of its processor, or set remote_detect"
            raise ValueError(f"partition {self.current_partition.name}: cores: unknown; {fix}")

    @property
    def number(self) -> int:
        """1 for the first launch of these cases in the session."""
        return getattr(self, ".repeat_no", 0) + 1

    def places_of_number(self) -> list[LaunchPlace]:
        """Return the places that ask for a launch with this number; all pairs of their parts get it."""
        layout = {"processes": self.processes, "per_node": self.num_tasks_per_node}
        counts = read_choice(options.LAUNCHES, [])
        return select_places(counts, self.number, program=self.program, **layout)

    def retest_targets(self, **place: str) -> list[RetestTarget]:
        """Return what a confirmation run measures of this check; empty in another session."""
        return select_targets(read_choice(options.AGAIN, []), program=self.program, layout=self.layout, **place)

    def is_selected(self, routine: str) -> bool:
        """Return whether a routine is measured: in a confirmation run only if it was slow here.

        ReFrame also runs pairs of partition and MPI that were not slow together but were with others. There,
        whatever was slow anywhere is measured.
        """
        if (wanted := self.wanted_routines()) is not None and routine not in wanted:
            return False
        if read_choice(options.AGAIN, None) is None:
            return True
        here = self.local_retest_targets() or self.retest_targets()
        return routine in {target.routine for target in here}

    def wanted_routines(self) -> dict[str, options.WantedRoutine] | None:
        """Return what rules ask for here, by routine, as far as the place is known; None without rules."""
        place = {"program": self.program, "layout": self.layout}
        if self.current_partition is not None:
            place["partition"] = self.current_partition.name
        return options.select_wanted(read_choice(options.WANTED, None), **place)

    def local_retest_targets(self) -> list[RetestTarget]:
        """Return what a confirmation run measures at this place, as far as the place is known yet."""
        if self.current_partition is None:
            return self.retest_targets()
        partition, environment = self.current_partition.name, self.current_environ.name
        return self.retest_targets(partition=partition, environment=environment)

    @run_after("setup")
    def set_launch_variables(self):
        """Set the user's variables for programs (``--set-env``), overriding those of the environment."""
        environ, request = self.current_environ, current_request()
        self.env_vars.update(environ.extras.get("launch_variables", {}))
        overrides = request.set_env.get(environ.name, {})
        self.env_vars.update({name: request.verbose[name] for name in request.verbose if name not in overrides})

    @run_after("setup")
    def avoid_nodes(self):
        """Exclude the slow nodes from a confirmation run, if the others suffice and the scheduler can do it."""
        needed = count_nodes(self)
        usable = current_request().usable_nodes.get(self.current_partition.name)
        nodes = min(self.facts.nodes, usable["count"]) if usable else self.facts.nodes
        avoided = list_avoided_nodes(self.local_retest_targets(), nodes, needed)
        backend = self.current_partition.scheduler.registered_name
        kept_off = find_scheduler(backend).exclude_nodes(avoided, backend) if avoided else []
        self.anywhere = bool(avoided) and not kept_off
        self.job.options += kept_off

    @run_after("setup")
    def keep_nodes(self):
        """Request the nodes of the launch that this one is compared with, if the scheduler can do it."""
        wanted = list_wanted_nodes(self.local_retest_targets())
        backend = self.current_partition.scheduler.registered_name
        if wanted:
            self.job.options += find_scheduler(backend).include_nodes(wanted, backend)

    @classmethod
    def setvar(cls, name: str, value: Any) -> bool:
        """Set a variable as ReFrame does for ``--setvar``, and record that it was set so."""
        done = type(cls).setvar(cls, name, value)  # type: ignore[attr-defined]  # of ReFrame's metaclass
        if done:
            cls.set_by_setvar |= {name}
        return done

    def value_from_setvar(self, name: str) -> Any:
        """Return the value that ``--setvar`` gave a variable; None if it gave none."""
        return getattr(self, name) if name in self.set_by_setvar else None

    def value_of_references(self, name: str) -> Any:
        """Return the value that references were measured with; None if they do not decide this variable."""

    @run_after("setup")
    def resolve_settings(self):
        """Resolve the variables that user, site and references may set."""
        for name in (*self.site_variables, options.TIME_LIMIT):
            value = resolve(
                getattr(self, name),
                outside=self.value_from_setvar(name),
                user=read_choice(name),
                site=self.facts.defaults.get(name) if name in self.site_variables else None,
                references=self.value_of_references(name),
            )
            setattr(self, name, value)

    @run_after("setup")
    def plan_launches(self):
        """Write down what this job will measure, so that a missing result is noticed."""
        self.session = Path(os.environ.get(SESSION, self.stagedir))
        planned = self.planned_launches()
        limit = float(self.time_limit)
        self.launches = [
            replace(launch, job_limit=limit, token=choose_token(self.session, launch))
            for launch in map(self.skip_resting, map(self.skip_without_nodes, planned))
        ]
        names = [launch.name for launch in self.launches]
        if twice := sorted({name for name in names if names.count(name) > 1}):
            raise ValueError(f"two starts are called {twice[0]}, and one would hide the other")
        for launch in self.launches:
            write_launch(self.session, launch, durable=not self.is_dry_run())
        reasons = {skip.reason for launch in self.launches for skip in launch.skips}
        self.skip_if(not any(launch.cases for launch in self.launches), "; ".join(sorted(reasons)))

    def skip_without_nodes(self, launch: PlannedLaunch) -> PlannedLaunch:
        """Skip all cases of a launch that needs more nodes than are usable."""
        usable = current_request().usable_nodes.get(self.current_partition.name)
        needed = count_nodes(self)
        if not usable or needed <= usable["count"]:
            return launch
        return launch.skip_all(f"needs {needed} nodes, and {usable['count']} can be used: {usable['why']}")

    def skip_resting(self, launch: PlannedLaunch) -> PlannedLaunch:
        """Skip all cases of a launch that is left to a later night."""
        place = launch.partition, launch.environment, launch.program
        reason = options.find_resting_reason(read_choice(options.RESTING, []), *place)
        return launch.skip_all(reason) if reason else launch

    def knows_nodes(self) -> bool:
        """Return whether its nodes are known: the first ones of a simulated machine, or all of a partition."""
        return self.facts.exact or count_nodes(self) == self.facts.nodes

    def planned_launch(self, **more) -> PlannedLaunch:
        """Return a launch with the facts of its place; ``more`` says what it measures."""
        facts = {
            "test": self.unique_name,
            "partition": self.current_partition.fullname,
            "environment": self.current_environ.name,
            "program": self.program,
            "library": self.environment_facts.library,
            "number": self.number,
            "exact": self.facts.exact,
            "session_gap_minutes": self.facts.session_gap_minutes,
            "by_hand": self.environment_facts.by_hand,
            "transports": dict(self.environment_facts.transports),
            "standard_abi": self.environment_facts.standard_abi,
            "in_container": bool(self.environment_facts.container),
            "nodes_per_switch": self.facts.nodes_per_switch if self.knows_nodes() else 0,
            "planted": self.current_environ.name in read_choice(options.PLANTED, []),
            "anywhere": self.anywhere,
            "accepts": collect_waivers(self.facts.accept, self.environment_facts.accept),
        }
        return PlannedLaunch(**facts | more)

    @run_after("setup")
    def choose_launcher(self):
        """Choose the MPI's launcher, if the site names one; replace one that cannot start an MPI."""
        launcher = self.environment_facts.launcher
        if not launcher and isinstance(self.job.launcher, getlauncher("local")):
            launcher = [find_usual_launcher(self.environment_facts)]
        elif not launcher and (
            beside := find_chosen_launcher(self.current_environ, self.job.launcher.registered_name)
        ):
            launcher = [beside]
        if launcher and isinstance(launcher, str):
            self.job.launcher = getlauncher(launcher)()
        elif launcher:
            self.job.launcher = EnvironmentLauncher(launcher)
        self.job.launcher.options += map(quote_word, self.environment_facts.words_of_processes)

    @sanity_function
    def check_complete_and_correct(self):
        """Check exit code, MPI, world size, every case and verified data; at least one start must have all."""
        self.outcomes = {launch.name: assess_launch(launch, self.session) for launch in self.started()}
        if all(outcome.verdict for outcome in self.outcomes.values()):
            outcome = next(iter(self.outcomes.values()))
            raise SanityError(f"{outcome.verdict}: {outcome.reason}")
        proof = self.current_environ.extras.get("proof", "")
        if proof not in read_text(Path(str(self.stderr)), "replace"):
            raise SanityError(f"{Verdict.INCORRECT}: nothing on standard error says {proof!r}")
        return True

    @run_before("performance")
    def set_references(self):
        """Make each case a performance variable, with its band if it has a comparable reference.

        Launches whose values are not compared with references have none.
        """
        if self.is_dry_run():
            return
        whole = [(launch, outcome) for launch, outcome in self.iter_whole_launches() if launch.asserted]
        measured = {
            name: measurement
            for _, outcome in whole
            for name, measurement in outcome.records.measurements.items()
        }
        scales = {name: find_shown_scale(measurement.unit) for name, measurement in measured.items()}
        self.perf_variables = {
            name: sn.make_performance_function(
                sn.defer(measurement.value * scales[name].factor), scales[name].unit
            )
            for name, measurement in measured.items()
        }
        place = (self.current_partition.fullname, self.current_environ.name)
        self.known = find_bands(place, [Path(root) for root in self.reference_roots], whole)
        self.reference = {
            self.current_partition.fullname: {
                name: (center * scales[name].factor, lower, upper, scales[name].unit)
                for name, (center, lower, upper, _) in self.known.tuples.items()
            }
        }

    @loggable  # type: ignore[prop-decorator]  # ReFrame's way
    @property
    def perfvalues(self):
        """ReFrame's table of values, corrected so that an unasserted value does not say ``pass``.

        For users of plain ReFrame it also has the fast end of the band, which fails nothing, and
        ``provisional`` if a reference cannot judge yet. ReFrame reads it for each value that it logs.
        """
        values = super().perfvalues
        if len(self.completed) < len(values):
            self.completed = {key: self.complete_value(key, entry) for key, entry in values.items()}
        return self.completed

    def complete_value(self, key: str, told: Sequence[Any]) -> Sequence[Any]:
        """Replace ReFrame's result of a value by a verdict, if ReFrame asserts nothing."""
        name = key.rpartition(":")[2]
        if name not in self.known.tuples:
            return [*told[:-1], self.known.unasserted(name).value]
        return told if is_in_session() else self.known.complete(name, told)

    @run_after("performance")
    def check_every_result(self):
        """Fail the job if a start yielded nothing or wrong data, or, if ``strict``, an unjudged value."""
        if self.is_dry_run():
            return
        for name, outcome in self.outcomes.items():
            if outcome.verdict:
                raise PerformanceError(f"{outcome.verdict}: {name}: {outcome.reason}")
            for wrong in outcome.records.wrong.values():
                raise PerformanceError(f"{Verdict.INCORRECT}: {name}: {wrong}")
        if self.strict and (missing := sorted(self.perf_variables.keys() - self.known.tuples)):
            launches = (launch for launch, _ in self.iter_whole_launches())
            site = runtime().site_config.sources[-1]
            raise PerformanceError(self.known.explain_unjudged(missing, launches, site))

    def launcher_words(self) -> str:
        """Return the words of this job's launcher, to be put in front of a program."""
        self.job.num_tasks = self.num_tasks
        self.job.num_tasks_per_node = self.num_tasks_per_node
        return self.job.launcher.run_command(self.job)

    def lines_of_mpicost(
        self, start: PlannedLaunch, words: str, variables: Mapping[str, str] = MappingProxyType({})
    ) -> Iterator[str]:
        """Yield the commands of one start among several in a job; mpicost needs no witness.

        :param variables: environment variables of this start alone; the launcher's own words may name them
        """
        program = str(getattr(self.mpicost, "program", "mpicost"))
        run = ["timeout", "--kill-after=10", f"{start.time_limit:.0f}", words]
        run += map(quote_word, [program, *start.options, f"--token={start.token}"])
        exports = "".join(f"export {name}={quote_word(text)}; " for name, text in variables.items())
        line = f"{' '.join(run)} > /dev/null"
        yield self.line_of_moment(start)
        yield f"({exports}{line})" if exports else line
        yield f"echo $? > {quote_word(str(start.ending(self.session)))}"
        yield self.line_of_moment(start)

    def limit_job(self, starts: Sequence[PlannedLaunch], rounds: int = 1) -> None:
        """Limit the job: all starts need time to begin, and one per round its full time."""
        longest = rounds * max((start.time_limit for start in starts), default=0)
        self.time_limit = f"{int(SECONDS_TO_START * (1 + len(starts) / 4) + longest)}s"

    def run_lines(self, lines: Sequence[str]) -> None:
        """Make the job run these commands, which start the program themselves."""
        self.prerun_cmds = lines
        self.job.launcher = getlauncher("local")()
        self.executable = "true"
        self.executable_opts: list[str] = []

    def line_of_moment(self, launch: PlannedLaunch) -> str:
        """Return the command that records when a start begins or ends.

        The shell itself reads the clock, because a library in front of the MPI would be in front of ``date``
        too.
        """
        return f"printf '%(%s)T\\n' -1 >> {quote_word(str(launch.span(self.session)))}"

    def line_of_limits(self, launch: PlannedLaunch) -> str:
        """Return the command that records the limits of the shell that starts a program."""
        batch = find_scheduler(self.current_partition.scheduler.registered_name).batch
        return write_limits_command(launch.limits(self.session), None if batch else read_quota_cpus())

    def allowed_sizes(self, routine: str, sizes: Iterable[int], limits: Mapping[str, int]) -> list[int]:
        """Return those sizes that a site's limits allow at this process count."""
        return [size for size in sizes if is_within_limits(limits, routine, size, self.processes)]

    def started(self) -> list[PlannedLaunch]:
        return [launch for launch in self.launches if launch.cases]

    def iter_whole_launches(self) -> Iterator[tuple[PlannedLaunch, LaunchOutcome]]:
        """Yield the starts that ended well, with their outcomes."""
        for launch in self.started():
            if self.outcomes[launch.name].verdict is None:
                yield launch, self.outcomes[launch.name]

    def case(self, **what) -> Case:
        """Return one case of this job; ``what`` has the rest of its key."""
        return Case(
            system=self.current_system.name,
            partition=self.current_partition.name,
            environment=self.current_environ.name,
            program=self.program,
            processes=self.processes,
            per_node=self.num_tasks_per_node,
            **what,
        )
