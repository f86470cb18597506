"""Measure the same cases by mpicost, OSU and IMB, in rounds that start all three one after the other.

A round is short compared with changes of a machine, and all rounds of a job use the same nodes: what slows one
program slows all. Every other round is in reverse order, so that a slow drift cancels.
"""

from collections.abc import Iterator
from dataclasses import replace

import reframe as rfm
from reframe.core.builtins import fixture, run_before, variable

from postprocess.model.options import ROUNDS
from postprocess.model.plan import PlannedLaunch
from postprocess.model.routines.benchmark import Benchmark
from postprocess.model.routines.mpicost import COMPARED, find_routine, format_routines
from reframe_checks.common.osu_imb import OsuImbCheck, Start
from reframe_checks.common.user_options import read_choice
from reframe_checks.imb import MPI1, build_imb, build_imb_options, imb, write_sizes
from reframe_checks.luecke import mpicost
from reframe_checks.osu import build_osu, build_osu_options, osu, split_into_chains
from site_configs.programs.installed import explain_missing_program
from site_configs.schema.reframe_request import current_request

CHECKS = {"osu": osu, "imb": imb}
LEAST = 4  #: bytes of a float

ComparedSizes = dict[str, list[int]]  #: by routine


@rfm.simple_test
class agreement(OsuImbCheck):
    """What at least two of the programs measure: blocking collectives, and the ping-pong of two processes."""

    descr = "The same by mpicost, OSU and IMB"
    program = "mpicost"  # the first; every start has its own
    tags = {"agree"}
    table = ()  # the tables of the programs are used
    #: At which an MPI sends immediately, buffers, and copies in one piece.
    own_sizes = [8, 1024, 65536, 1048576]

    #: Rounds in which all programs are started.
    #:
    #: :default: ``8``
    rounds = variable(int, value=read_choice(ROUNDS, 8))

    #: Timed calls of each size, by each program.
    #:
    #: :default: ``200``
    iterations = 200

    #: Untimed calls of each size before them; IMB makes a tenth of its timed calls, which cannot be changed.
    #:
    #: :default: ``500``: some MPIs use new pages of a buffer in the first hundreds
    warmups = variable(int, value=500)

    built_osu = fixture(build_osu, scope="environment")
    built_imb = fixture(build_imb, scope="environment")

    def measures_on(self, part) -> bool:
        """Return whether two programs have a chosen routine on a partition."""
        return not part.extras.get("exact") and bool(self.sizes_by_routine())

    def sizes_by_routine(self) -> ComparedSizes:
        """Return the sizes of the routines that two programs have at this process count, by routine."""
        programs = [self.routines_of(name) for name in CHECKS] + [set(mpicost.table)]
        names = sorted(set().union(*programs))
        return {
            routine: sizes
            for routine in names
            if sum(routine in program for program in programs) > 1
            and not (routine == "pingpong" and self.processes != 2)
            and (not self.routines or routine in self.routines)
            and (sizes := self.sizes_compared(routine))
        }

    def routines_of(self, program: str) -> set[str]:
        """Return the routines of a program that time nothing but the calls."""
        table = CHECKS[program].table
        return {benchmark.routine for benchmark in table if benchmark.executable in ("", MPI1)}

    def sizes_compared(self, routine: str) -> list[int]:
        """Return the sizes at which a routine is compared; ``[0]`` without a payload."""
        sizes = [0] if routine == "barrier" else self.sizes or self.own_sizes
        limits = {} if self.routines else self.left_out_above
        return self.allowed_sizes(routine, sizes, limits)

    def planned_launches(self) -> list[PlannedLaunch]:
        sizes = self.sizes_by_routine()
        programs = [self.mpicost_starts(sizes), self.osu_starts(sizes), self.imb_starts(sizes)]
        starts = []
        for number in range(1, self.rounds + 1):
            for planned in programs if number % 2 else reversed(programs):
                starts += [self.in_round(start, number) for start in planned]
        self.limit_job(starts, self.rounds)
        return starts

    def in_round(self, start: PlannedLaunch, number: int) -> PlannedLaunch:
        """Return a start of a round, with its own files: IMB's options name the file of its sizes."""
        start = replace(start, number=number)
        options = self.options_of if start.benchmarks else self.options_of_mpicost
        return replace(start, options=tuple(options(start)))

    def mpicost_starts(self, compared: ComparedSizes) -> list[PlannedLaunch]:
        """Return one start of mpicost for all its cases, with options that make it time like the others."""
        cases = tuple(
            self.case(
                routine=routine, peer=int(routine == "pingpong"), cache="warm", sync="barrier", bytes=size
            )
            for routine, sizes in compared.items()
            for size in sizes
            if routine in mpicost.table and find_routine(routine).has_size(size)
        )
        start = self.planned_launch(
            start="mpicost", trials=self.iterations + 1, time_limit=self.limit_of_start(cases), cases=cases
        )
        return [start] if cases else []

    def osu_starts(self, compared: ComparedSizes) -> list[PlannedLaunch]:
        """Return one start per benchmark, and further ones for sizes that are not powers of two."""
        return [
            self.start_of("osu", Start(f"{benchmark.name}_{chain[0]}", [benchmark], chain), compared)
            for benchmark in self.benchmarks_of("osu", compared)
            for chain in chains(compared[benchmark.routine])
        ]

    def imb_starts(self, compared: ComparedSizes) -> list[PlannedLaunch]:
        """Return one start for all benchmarks with the same sizes."""
        groups: dict[tuple[int, ...], list[Benchmark]] = {}
        for benchmark in self.benchmarks_of("imb", compared):
            sizes = add_warmup_sizes(compared[benchmark.routine])
            groups.setdefault(tuple(sizes), []).append(benchmark)
        return [
            self.start_of("imb", Start(f"{MPI1}-{group[0].name}", group, list(sizes)), compared)
            for sizes, group in groups.items()
        ]

    def benchmarks_of(self, program: str, compared: ComparedSizes) -> list[Benchmark]:
        """Return the benchmarks that are compared, without those that no other program has."""
        return [
            benchmark
            for benchmark in CHECKS[program].table
            if benchmark.routine in compared
            and benchmark.is_measured_at(self.processes, self.num_tasks_per_node)
        ]

    def start_of(self, program: str, start: Start, compared: ComparedSizes) -> PlannedLaunch:
        """Return the plan of a start of OSU or IMB. Sizes that only warm up are not compared."""
        reason = explain_missing_program(program, self.current_environ.extras, current_request().spack)
        planned = self.planned_start(start, reason)
        sizes = {size for benchmark in start.benchmarks for size in compared[benchmark.routine]}
        return replace(
            planned,
            program=program,
            cases=tuple(replace(case, program=program) for case in planned.cases),
            skips=tuple(replace(skip, case=replace(skip.case, program=program)) for skip in planned.skips),
            method={**self.method(), "warmups": self.warmups, COMPARED: sorted(sizes)},
        )

    @run_before("run")
    def write_sizes(self):
        for start in self.started():
            if start.program == "imb":
                write_sizes(start, self.session)

    def lines_of(self, start: PlannedLaunch, launch_words: str) -> Iterator[str]:
        if start.program == "mpicost":
            return self.lines_of_mpicost(start, launch_words)
        return super().lines_of(start, launch_words)

    def options_of(self, start: PlannedLaunch) -> list[str]:
        """Return the options as in the program's own check; only IMB has several executables."""
        if start.benchmarks[0].executable:
            return build_imb_options(start, self.session)
        return build_osu_options(start, self.warmups)

    def options_of_mpicost(self, start: PlannedLaunch) -> list[str]:
        """Return the options as in mpicost's own check, with calls back to back."""
        return [
            f"--routine={format_routines(start.cases)}",
            f"--trials={start.trials}",
            "--cache=warm",
            "--sync=barrier",
            f"--back-to-back={self.warmups}",
            f"--output={start.records(self.session)}",
        ]

    def built_for(self, start: PlannedLaunch) -> rfm.CompileOnlyRegressionTest:
        return self.built_imb if start.program == "imb" else self.built_osu

    def planned_launch(self, **more) -> PlannedLaunch:
        # programs are compared with each other, not with references
        return super().planned_launch(**(more | {"asserted": False}))


def add_warmup_sizes(sizes: list[int]) -> list[int]:
    """Return the sizes of IMB, each preceded by half of it, which absorbs what is slow only at first."""
    halves = {max(LEAST, size // 2 // LEAST * LEAST) for size in sizes}
    return sizes if sizes == [0] else sorted({*sizes, *halves})


def chains(sizes: list[int]) -> list[list[int]]:
    """Return the sizes of each start of OSU: all doublings up to the largest, or exactly the wanted ones."""
    powers = {LEAST << power for power in range(60)}
    if sizes != [0] and powers.issuperset(sizes):
        return [sorted(size for size in powers if size <= max(sizes))]
    return split_into_chains(sizes)
