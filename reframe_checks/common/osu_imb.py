"""What the checks of OSU and IMB share: a table of benchmarks, a job per layout, a witness for each start."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import run_before, variable
from reframe.utility import typecheck as typ

from postprocess.base.sanitize import quote_word
from postprocess.model.case import Case
from postprocess.model.interposed import WITNESS
from postprocess.model.options import VALIDATION
from postprocess.model.plan import PlannedLaunch, SkippedCase
from postprocess.model.routines.benchmark import (
    ITERATIONS,
    LEAST_ITERATIONS,
    WHOLE_START,
    WINDOW_ITERATIONS,
    WINDOW_SHARE,
    Benchmark,
)
from postprocess.model.routines.mpicost import WARM
from postprocess.model.routines.requested import REQUESTED
from reframe_checks.common.base import SECONDS_TO_START, LaunchCheck
from reframe_checks.common.mpi_support import explain_unsupported
from reframe_checks.common.selection_guard import note_choice
from reframe_checks.common.user_options import is_in_session, read_choice
from site_configs.mpi.family import identify_library
from site_configs.programs.installed import explain_missing_program, find_executable, is_lack_foreseen
from site_configs.programs.program import PROGRAMS
from site_configs.schema.reframe_request import current_request
from spack_envs.installation import FOLDER, write_program

POWERS_OF_TWO = [2**power for power in range(21)]  #: up to a mebibyte, as in both programs
SECONDS_PER_CASE = 2  #: allowed, not expected


@dataclass(frozen=True)
class Start:
    """Benchmarks that one start of a program runs, all at these sizes in bytes."""

    name: str
    benchmarks: list[Benchmark]
    sizes: list[int]


def count_iterations(asked: int, windows: bool) -> int:
    """Return the iterations of a start: fewer than requested if each is a window of messages."""
    return max(share_windows(asked), LEAST_ITERATIONS) if windows else asked


def share_windows(calls: int) -> int:
    """Return how many windows of messages stand for this number of calls."""
    return -(-calls // WINDOW_SHARE)


def preload_first(library: Path, own: str = "") -> str:
    """Format the value of ``LD_PRELOAD`` for a shell: the library, then what a site or the user preloads.

    :param own: what the program itself preloads, as a shell reads it
    """
    return f'{quote_word(str(library))}{own and f":{own}"}"${{LD_PRELOAD:+:$LD_PRELOAD}}"'


def time_whole_line(line: str, output: str) -> str:
    """Return a bash command that appends the seconds that it took to its output."""
    return f"{{ TIMEFORMAT='# {WHOLE_START}: %3R'; time {line} 2>&3; }} 3>&2 2>> {output}"


class OsuImbCheck(LaunchCheck, family=True):
    """The benchmarks of a table. A subclass has the table, and knows how its program is called."""

    must_define = (*LaunchCheck.must_define, "table", "own_sizes")

    #: Variables that a site may set on a partition (``defaults``). ``max_pending_time`` is ReFrame's: how long
    #: a job may wait, as ``10m``.
    site_variables: tuple[str, ...] = ("iterations", "left_out_above", "max_pending_time")

    #: What is measured, one benchmark per line. ``Benchmark`` explains its parts; ``mpi_support.py`` what needs
    #: MPI 3.
    #:
    #: :required: yes, by the program's check
    table: tuple[Benchmark, ...]

    #: The sizes in bytes of each benchmark that has none of its own.
    #:
    #: :required: yes, by the program's check
    own_sizes: list[int]

    #: Measure these routines only (``["bcast", "barrier"]``); the whole table if empty.
    #:
    #: :default: ``[]``
    routines = variable(typ.List[str], value=read_choice("routines", []))

    #: Measure these sizes (bytes, ``[8, 65536]``) instead of ``own_sizes``; those if empty.
    #:
    #: :default: ``[]``
    sizes = variable(typ.List[int], value=read_choice("sizes", []))

    #: The most processes at which a routine is measured (``{"alltoall": 512}``), or a routine at one size
    #: (``{"alltoall:65536": 64}``), unless routines are asked for by name.
    #:
    #: :default: ``{}``
    left_out_above = variable(typ.Dict[str, int], value={})

    #: Timed calls of each size; a fifth of them if a call is a window of 64 messages, as in bandwidth tests.
    #:
    #: :default: ``100``: less than the programs' own, so that every size fits into a night
    iterations = variable(int, value=read_choice("iterations", ITERATIONS))

    #: ``warm``: the same buffers in every call; for IMB also ``rotate``: other memory each time.
    #:
    #: :default: ``warm``
    cache = variable(str, value=read_choice("cache", WARM))

    keep_files = [] if is_in_session() else [*LaunchCheck.keep_files, FOLDER]

    @property
    def validates(self) -> bool:
        """Whether data is verified, in launches whose times are not used."""
        return bool(read_choice(VALIDATION, ""))

    def measures_on(self, part) -> bool:
        """Return whether a routine of the table was chosen. Only mpicost runs in simulated time."""
        possible = self.cache in PROGRAMS[self.program].caches and not part.extras.get("exact")
        return possible and any(self.sizes_of(benchmark) for benchmark in self.chosen_benchmarks())

    def planned_launches(self) -> list[PlannedLaunch]:
        """Return every start of the job, each with its own end."""
        extras = self.current_environ.extras
        reason = explain_missing_program(self.program, extras, current_request().spack)
        foreseen = is_lack_foreseen(self.program, extras, current_request().spack)
        starts = [
            self.planned_start(start, reason, foreseen)
            for start in self.starts()
            if start.sizes and start.benchmarks
        ]
        self.limit_job(starts)
        return starts

    def limit_of_start(self, cases: Sequence[Case]) -> float:
        """Return the seconds that a start may take: the user's limit, else one that follows from its cases."""
        return float(self.time_limit or SECONDS_TO_START + SECONDS_PER_CASE * len(cases))

    def planned_start(self, start: Start, reason: str, foreseen: bool = False) -> PlannedLaunch:
        """Return the plan of one start, without what this MPI does not support.

        :param reason: why the program is not available, if so: then everything is skipped.
        :param foreseen: whether that was known before anything was tried with this MPI
        """
        able = [benchmark for benchmark in start.benchmarks if not self.explain_unmeasured(benchmark)]
        skips = [
            SkippedCase(
                case,
                reason or self.explain_unmeasured(benchmark),
                unavailable=True,
                no_program=bool(reason),
                foreseen=bool(reason) and foreseen,
            )
            for benchmark in start.benchmarks
            if reason or benchmark not in able
            for case in self.cases_of(benchmark, start.sizes)
        ]
        cases = [case for benchmark in able if not reason for case in self.cases_of(benchmark, start.sizes)]
        launch = self.planned_launch(
            start=start.name,
            trials=self.count_calls(start),
            time_limit=self.limit_of_start(cases),
            cases=tuple(cases),
            skips=tuple(skips),
            benchmarks=tuple(able),
            method=self.method(),
            asserted=not self.validates,
            validation=self.validates,
        )
        return replace(launch, options=tuple(self.options_of(launch))) if able else launch

    def count_calls(self, start: Start) -> int:
        """Count the timed calls of each size in a start."""
        return count_iterations(self.iterations, any(benchmark.window for benchmark in start.benchmarks))

    def explain_unmeasured(self, benchmark: Benchmark) -> str:
        """Explain why this environment's MPI cannot run a benchmark; empty if it can."""
        family, version = identify_library(self.environment_facts.library)
        return explain_unsupported(family, version, benchmark)

    def cases_of(self, benchmark: Benchmark, sizes: list[int]) -> Iterator[Case]:
        for size in sizes:
            yield self.case(
                routine=benchmark.routine,
                peer=benchmark.peer,
                cache=self.cache,
                sync=benchmark.sync,
                bytes=size,
            )

    def method(self) -> dict[str, Any]:
        """Return the method, which must be equal for values to be comparable."""
        windows = count_iterations(self.iterations, windows=True)
        return {"iterations": self.iterations, WINDOW_ITERATIONS: windows}

    @run_before("run")
    def keep_builds(self):
        """Record beside the launches what ran: under a site's own ReFrame they are a session."""
        if not is_in_session():
            for start in self.started():
                write_program(self.session, self.built_for(start).kept)

    @run_before("run")
    def set_commands(self):
        """Write the starts, one after the other, each ended at its limit, whatever the one before did."""
        words = self.launcher_words()
        self.run_lines([line for start in self.started() for line in self.lines_of(start, words)])

    def lines_of(self, start: PlannedLaunch, launch_words: str) -> Iterator[str]:
        prefix = Path(getattr(self.mpicost, "program", "bin/mpicost")).parent.parent
        start_variables = self.variables_of(start)
        variables = {
            **start_variables,
            "LD_PRELOAD": preload_first(prefix / WITNESS, start_variables.get("LD_PRELOAD", "")),
            "PLUMBLINE_WITNESS": quote_word(str(start.witness(self.session))),
            "PLUMBLINE_TOKEN": start.token,
        }
        words = ["timeout", "--kill-after=10", f"{start.time_limit:.0f}", launch_words, "env"]
        words += [f"{name}={value}" for name, value in variables.items()]
        words += map(quote_word, [self.path_of(start), *start.options])
        yield f"rm -f {variables['PLUMBLINE_WITNESS']}"
        yield self.line_of_limits(start)
        yield self.line_of_moment(start)
        output = quote_word(str(start.output(self.session)))
        line = f"{' '.join(words)} > {output}"
        timed = any(benchmark.column == WHOLE_START for benchmark in start.benchmarks)
        yield time_whole_line(line, output) if timed else line
        yield f"echo $? > {quote_word(str(start.ending(self.session)))}"
        yield self.line_of_moment(start)

    def variables_of(self, start: PlannedLaunch) -> dict[str, str]:
        """Return the variables that a start needs; values as a shell reads them."""
        return self.current_environ.extras.get("program_env", {}).get(start.program, {})

    def path_of(self, start: PlannedLaunch) -> str:
        """Return the executable of a start, or where it would be."""
        folder = Path(getattr(self.built_for(start), "folder", ""))
        return str(find_executable(folder, start.executable) or folder / start.executable)

    def built_for(self, _: PlannedLaunch) -> rfm.CompileOnlyRegressionTest:
        return self.built

    def note_choices(self) -> None:
        """Record the routines, sizes and caches that were chosen, and which of them are here."""
        measured = self.chosen_benchmarks()
        if "routines" in self.set_by_setvar:
            routines = [benchmark.routine for benchmark in self.table]
            note_choice("routines", self.routines, [benchmark.routine for benchmark in measured], routines)
        if "sizes" in self.set_by_setvar:
            there = [n for benchmark in measured if benchmark.sizes is None for n in self.sizes_of(benchmark)]
            note_choice("sizes", self.sizes, there)
        if "cache" in self.set_by_setvar:
            caches = PROGRAMS[self.program].caches
            note_choice("cache", [self.cache], caches, caches)

    def chosen_benchmarks(self) -> list[Benchmark]:
        layout = self.processes, self.num_tasks_per_node
        wanted = [benchmark for benchmark in self.table if benchmark.is_measured_at(*layout)]
        sync, peers = read_choice("sync", ""), read_choice("peers", [])
        return [
            benchmark
            for benchmark in wanted
            if (benchmark.routine in self.routines if self.routines else not self.is_extra(benchmark))
            and self.is_selected(benchmark.routine)
            and (benchmark.verifies or not self.validates)
            and (not sync or benchmark.sync == sync)
            and (not peers or benchmark.peer in peers)
        ]

    def is_extra(self, benchmark: Benchmark) -> bool:
        """Return whether a benchmark runs on request only, and was not requested by name."""
        return benchmark.routine in REQUESTED and benchmark.routine not in (self.wanted_routines() or {})

    def sizes_of(self, benchmark: Benchmark) -> list[int]:
        wanted = (self.wanted_routines() or {}).get(benchmark.routine)
        limits = {} if self.routines or wanted else self.left_out_above
        asked = (wanted and wanted.sizes) or self.sizes or [*self.own_sizes, *benchmark.larger]
        return self.allowed_sizes(benchmark.routine, benchmark.chosen_sizes(asked), limits)
