"""Measure what a language costs over C, on request: ``./plumbline run --program bindings``.

The programs are those of ``./plumbline agree --bindings``. A launch of a language has several rounds, each of
which starts C too, and its value is the time relative to C.
"""

import json
import shlex
from collections.abc import Iterable, Iterator
from dataclasses import asdict
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import reframe as rfm
from reframe.core.builtins import parameter, run_before

from postprocess.base.files import write_text
from postprocess.base.processes import start_module
from postprocess.base.progress import DOES, SAYS, tell_starter
from postprocess.base.records import read_record
from postprocess.base.sanitize import quote_words
from postprocess.model.case import Case
from postprocess.model.interposed import WITNESS
from postprocess.model.options import PROGRAM
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.benchmark import Benchmark
from postprocess.parsers.bindings import COLUMNS, RATIO, SECONDS
from reframe_checks.common.language_rounds import LanguageRounds, LanguageStart
from reframe_checks.common.layouts import list_on_all_partitions, list_pair_layouts_on
from reframe_checks.common.osu_imb import OsuImbCheck, Start
from reframe_checks.common.user_options import SOURCE, read_choice
from site_configs.mpi import languages
from site_configs.mpi.exchange import BARRIER, BATCHES, BINDINGS, ELEMENT, ROUTINES, SIZES, C, list_options
from site_configs.mpi.inventory import find_inventory
from site_configs.mpi.probe import extract_identity
from site_configs.schedulers.registry import find_scheduler
from site_configs.schema.reframe_request import current_request
from site_configs.schema.variables import work_directory
from site_configs.topology.layouts import Layout
from spack_envs.mirror.manifest import find_named_mirror
from spack_envs.mirror.use import JARS, WHEELS

ROUNDS = 5  #: per launch
OF_LOADING = {"LD_LIBRARY_PATH", "LD_PRELOAD"}  #: variables that decide which library a program loads
MEASURED = [language for language in languages.LANGUAGES if language.name != languages.CONTROL]


@rfm.simple_test
class bindings(OsuImbCheck):
    """Each routine in each language: ``bcast.rust``; C itself by its time."""

    descr = "MPI from several languages, beside C"
    program = BINDINGS
    layout = parameter(list_on_all_partitions(list_pair_layouts_on))
    site_variables = ("left_out_above", "max_pending_time")
    iterations = ROUNDS * BATCHES
    own_sizes = [*SIZES]
    table = tuple(
        Benchmark(
            *(name, name, name),
            COLUMNS[unit],
            unit,
            ranks="two",
            sizes=(0,) if routine == BARRIER else None,
            least=ELEMENT,
            executable=C,
        )
        for language in MEASURED
        for routine in ROUTINES
        for name, unit in [(f"{routine}.{language.name}", SECONDS if language.name == C else RATIO)]
    )

    def layouts_on(self, part) -> list[Layout]:
        """Return the single layout: two ranks on a node have the shortest messages."""
        return list_pair_layouts_on(part)

    def measures_on(self, part) -> bool:
        """Return whether anything was chosen; in simulated time everything is skipped with its reason."""
        return any(self.sizes_of(benchmark) for benchmark in self.chosen_benchmarks())

    def is_extra(self, benchmark: Benchmark) -> bool:
        """Return whether neither the program nor the case was asked for."""
        named = self.program in read_choice(PROGRAM.variable, [])
        return not named and benchmark.routine not in (self.wanted_routines() or {})

    def starts(self) -> Iterator[Start]:
        for language in MEASURED:
            benchmarks = [
                benchmark
                for benchmark in self.chosen_benchmarks()
                if split_language(benchmark.routine) == language.name
            ]
            yield Start(
                language.name,
                benchmarks,
                sorted({size for benchmark in benchmarks for size in self.sizes_of(benchmark)}),
            )

    def cases_of(self, benchmark: Benchmark, sizes: list[int]) -> Iterator[Case]:
        """Return the cases of a benchmark: a barrier has its own size."""
        return super().cases_of(benchmark, self.sizes_of(benchmark))

    def planned_launches(self) -> list[PlannedLaunch]:
        """Return one launch per language; their starts take turns."""
        starts = [self.planned_start(start, "") for start in self.starts() if start.benchmarks]
        self.limit_job(starts, ROUNDS)
        return starts

    def explain_unmeasured(self, benchmark: Benchmark) -> str:
        lacking = self.ready.lacking
        return lacking.get(C) or lacking.get(split_language(benchmark.routine), "")

    @cached_property
    def ready(self) -> languages.Ready:
        """The programs of this MPI, prepared once per session; a list does not start slow builds."""
        try:
            bench = self.find_bench()
        except languages.Unavailable as lacking:
            return languages.Ready({}, {C: str(lacking)})
        file = bench.folder / "ready.json"
        if not file.exists():
            bench.folder.mkdir(parents=True, exist_ok=True)
            chosen = {C, *(split_language(benchmark.routine) for benchmark in self.chosen_benchmarks())}
            wanted = [language for language in MEASURED if language.name in chosen]
            ready = languages.prepare_languages(
                bench, wanted, partial(tell_starter, DOES), current_request().only_looking
            )
            write_text(file, json.dumps(asdict(ready), indent=1))
        return read_record(file, languages.Ready)

    def find_bench(self) -> languages.Bench:
        """Find the MPI and the folder for its programs.

        :raises Unavailable: if that is not possible.
        """
        if self.facts.exact:
            raise languages.Unavailable("what a language adds takes no simulated time")
        facts, work = self.environment_facts, work_directory()
        batch = find_scheduler(self.current_partition.scheduler.registered_name).batch
        mpis = () if batch else find_inventory(work).mpis
        mpi = next((candidate for candidate in mpis if candidate.name == self.current_environ.name), None)
        if mpi is None or facts.compilers != (mpi.mpicc,):
            why = "languages are compared where ./plumbline is called"
            raise languages.Unavailable(f"needs --site local in a job of one node; {why}")
        if moved := sorted(OF_LOADING & {*current_request().set_env.get(mpi.name, {})}):
            why = "other languages name their library themselves, and may run on another than C"
            raise languages.Unavailable(f"--set-env {mpi.name}:{moved[0]}: {why}; set it in the shell")
        if mpi.standard_abi or mpi.layer:
            raise languages.Unavailable("bindings are those of the MPI as it is")
        mirror = find_named_mirror(work, None)
        wheels, jars = (mirror / name if mirror else None for name in (WHEELS, JARS))
        folder = self.session / BINDINGS / mpi.name
        return languages.Bench(mpi, folder, work / "mpi", wheels, jars, partial(tell_starter, SAYS))

    def options_of(self, launch: PlannedLaunch) -> list[str]:
        return list_options_of([launch])

    def method(self) -> dict[str, Any]:
        return {"iterations": self.iterations, "bindings": languages.hash_sources()}

    def built_for(self, _: PlannedLaunch) -> rfm.CompileOnlyRegressionTest:
        """Return the build that the witness belongs to."""
        return self.mpicost

    @run_before("run")
    def set_commands(self):
        """Write the job: all languages in rounds, in one process that starts them."""
        started = self.started()
        words = self.launcher_words()
        file = Path(self.session, "raw", f"{started[0].name}.rounds.json") if started else Path()
        if started:
            write_text(file, json.dumps(asdict(self.plan_rounds(started, tuple(shlex.split(words)))), indent=1))
        lines = [self.line_of_limits(launch) for launch in started]
        moments = [self.line_of_moment(launch) for launch in started]
        run = quote_words([*start_module(SOURCE, "reframe_checks.common.language_rounds"), str(file)])
        self.run_lines([*lines, *moments, run, *moments])

    def plan_rounds(self, started: list[PlannedLaunch], launcher: tuple[str, ...]) -> LanguageRounds:
        library = extract_identity(self.environment_facts.library)
        prefix = Path(getattr(self.mpicost, "program", "bin/mpicost")).parent.parent
        programs = self.ready.programs
        return LanguageRounds(
            c=programs[C],
            library=library,
            starts=tuple(
                LanguageStart(
                    launch.start,
                    programs[launch.start],
                    programs[launch.start].library or library,
                    launch.token,
                    *(str(path(self.session)) for path in (launch.witness, launch.output, launch.ending)),
                )
                for launch in started
            ),
            launcher=launcher,
            options=tuple(list_options_of(started)),
            rounds=ROUNDS,
            limit=max(launch.time_limit for launch in started),
            witness=str(prefix / WITNESS),
            seed=started[0].token,
        )


def list_options_of(launches: Iterable[PlannedLaunch]) -> list[str]:
    """List the options that measure all cases of these launches; a barrier needs a size, too."""
    sizes = {case.bytes for launch in launches for case in launch.cases if case.bytes}
    return list_options(sorted(sizes) or [SIZES[0]])


def split_language(routine: str) -> str:
    return routine.partition(".")[2]
