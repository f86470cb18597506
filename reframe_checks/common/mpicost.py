"""What all checks with mpicost share: one launch measures a family of cases at one process count."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from reframe.core.builtins import run_after, run_before, variable
from reframe.utility import typecheck as typ

from postprocess.base.sanitize import quote_word
from postprocess.model.case import Case
from postprocess.model.options import AS_REFERENCES, BUDGET, ROUND_COUNT, TRIAL_COUNT
from postprocess.model.plan import PlannedLaunch, SkippedCase
from postprocess.model.routines import mpicost as suite
from postprocess.model.routines.benchmark import LOOP
from postprocess.references.catalog import read_reference_trials
from reframe_checks.common.base import SECONDS_TO_START, LaunchCheck
from reframe_checks.common.selection_guard import note_choice
from reframe_checks.common.user_options import read_choice
from site_configs.schema.reframe_request import current_request
from site_configs.topology.machine import measure_flush_seconds


def estimate_shared_bytes(routine: str, processes: int, size: int) -> int:
    """Estimate the bytes of all processes' send and receive buffers, and of messages in flight.

    :param size: bytes by the routine's convention: of a block between two processes, or of a vector.
    :raises ValueError: if mpicost has no such routine.
    """
    return suite.find_routine(routine).count_blocks(processes) * size


SECONDS_PER_TRIAL = 0.1  #: allowed, not expected
#: allowed for one: ranks of other nodes may take longer than one on this machine
FLUSHES_PER_TRIAL = 20


class MpicostCheck(LaunchCheck, family=True):
    """A family of routines, each at its sizes, in one launch. A subclass names the family in ``table``."""

    program = "mpicost"
    must_define = (*LaunchCheck.must_define, "table")
    #: Variables that a site may set on a partition (``defaults``). The last two are ReFrame's: how long a job
    #: may last, and how long it may wait, as ``10m``.
    site_variables: tuple[str, ...] = (
        "trials",
        "trial_rounds",
        "cache",
        "sync",
        "peers",
        "left_out_above",
        "seconds_per_layout",
        "time_limit",
        "max_pending_time",
    )

    #: The family: the sizes in bytes at which each routine is measured; ``[0]`` without a payload: ``{"bcast":
    #: [8, 10_000], "barrier": [0]}``. ``mpicost --list`` prints the routines.
    #:
    #: :required: yes, by the family's check
    table = variable(typ.Dict[str, typ.List[int]])

    #: Measure these routines only (``["bcast", "barrier"]``); the whole family if empty.
    #:
    #: :default: ``[]``
    routines = variable(typ.List[str], value=read_choice("routines", []))

    #: The most processes at which a routine is measured (``{"scan_min": 32}``), or a routine at one size
    #: (``{"alltoall:1000": 32}``), unless routines are asked for by name; routines not listed have no limit.
    #:
    #: :default: ``{}``
    left_out_above = variable(typ.Dict[str, int], value={})

    #: Measure these sizes (bytes, ``[8, 1000]``) instead of the family's own; its own if empty. Routines that
    #: compute are measured at multiples of 8 only.
    #:
    #: :default: ``[]``
    sizes = variable(typ.List[int], value=read_choice("sizes", []))

    #: Timed calls per case, of which the first is dropped.
    #:
    #: :default: ``51``, as in the papers; in a night those of its references
    trials = variable(int, value=read_choice("trials", suite.TRIALS))

    #: How often a launch visits each case, in a new random order every time, for a share of its trials, so that
    #: a change within a launch affects all cases alike. A visit has at least two trials.
    #:
    #: :default: ``5``; in a night those of its references
    trial_rounds = variable(int, value=read_choice(ROUND_COUNT.variable, suite.TRIAL_ROUNDS))

    #: ``evict`` both buffers from the caches before each trial, ``flush`` the caches by a walk through more
    #: memory than they hold, as in the papers, or leave them ``warm``.
    #:
    #: :default: ``evict``: its cost does not grow with the caches, and launches differ less
    cache = variable(str, value=read_choice("cache", suite.CACHE))

    #: How the processes of a trial start together: ``dissemination``, ``barrier`` or ``window``; ``loop``: a
    #: trial is as many calls as last 10 ms, after one synchronisation, with warm caches.
    #:
    #: :default: ``dissemination``, which is the same algorithm with every MPI
    sync = variable(str, value=read_choice("sync", suite.SYNC))

    #: Most seconds of work before the first case; none in simulated time. Idle processors are slow at first,
    #: and cases come in random order: the first ones were up to 40% slower. It ends when no processor speeds up
    #: any more.
    #:
    #: :default: ``0.5``
    settle = variable(float, value=0.5)

    #: Seconds that a night may take for all launches of this layout with one MPI.
    #:
    #: :default: ``30``
    seconds_per_layout = variable(int, value=read_choice(BUDGET.variable, suite.SECONDS_PER_LAYOUT))

    #: Partners of rank 0 in ping-pong (``[1, 3]``), one after the other; every other process if empty.
    #:
    #: :default: ``[]``, as in the papers
    peers = variable(typ.List[int], value=read_choice("peers", []))

    @run_after("init")
    def apply_table(self):
        """Check the table: a routine without a size would silently not be measured."""
        if not self.table or not all(self.table.values()):
            raise ValueError("table: give every routine of the family a size, [0] for no payload")
        for routine in self.table:
            suite.find_routine(routine)  # a routine unknown there would be missing from every analysis

    def measures_on(self, part) -> bool:
        """Return whether anything of the family was chosen, in a cache state that mpicost supports."""
        return self.cache in suite.CACHES and any(
            self.partners(routine) and self.chosen_sizes(routine)
            for routine in self.chosen_routines()
            if not (part.extras.get("exact") and routine in suite.CONTROLS)
        )

    def planned_launches(self) -> list[PlannedLaunch]:
        """Return the one start of this job, with a time limit, by default from its cases."""
        if self.sync == LOOP:
            self.cache = suite.WARM  # only the first of its calls could be cold
        cases = list(self.all_cases())
        if self.time_limit is None:  # type: ignore[has-type]  # a variable of ReFrame's
            seconds = len(cases) * self.trials * self.allowed_trial_seconds()
            self.time_limit = f"{SECONDS_TO_START + int(seconds)}s"
        skips = [
            skip for case in cases if (skip := self.explain_impossible(case) or self.explain_too_large(case))
        ]
        skipped = {skip.case for skip in skips}
        launch = self.planned_launch(
            trials=self.trials,
            rounds=max(1, min(self.trial_rounds, self.trials // suite.VISIT)),
            budget=float(self.seconds_per_layout),
            time_limit=float(self.time_limit),
            cases=tuple(case for case in cases if case not in skipped),
            skips=tuple(skips),
        )
        return [replace(launch, options=tuple(self.options_of(launch)))]

    def allowed_trial_seconds(self) -> float:
        """Return the seconds that a trial may take on average, given the measured time of a flush here."""
        flush = FLUSHES_PER_TRIAL * measure_flush_seconds() if self.cache == suite.FLUSH else 0.0
        return SECONDS_PER_TRIAL + flush

    def value_of_references(self, name: str) -> int | None:
        """Return the trials or rounds of references, for a session compared with them; a paper has its own."""
        counts = (TRIAL_COUNT.variable, ROUND_COUNT.variable)
        if name not in counts or not read_choice(AS_REFERENCES, False) or self.family:
            return None
        place = (self.current_system.name, self.current_partition.name, self.current_environ.name)
        reference_counts = read_reference_trials([Path(root) for root in self.reference_roots], *place)
        return reference_counts[counts.index(name)] if reference_counts else None

    @property
    def launch(self) -> PlannedLaunch:
        return self.launches[0]

    def explain_impossible(self, case: Case) -> SkippedCase | None:
        """Explain why a case cannot be timed, or would end all others of its launch; None if it can be run."""
        if self.facts.exact and suite.find_routine(case.routine).local:
            return SkippedCase(case, "what a process computes takes no simulated time")
        impossible = self.current_environ.extras.get("impossible", {})
        what = f"{case.routine}:{case.bytes}"
        reason = impossible.get(what) or impossible.get(f"{what}:{case.processes}")
        return SkippedCase(case, reason) if reason else None

    def explain_too_large(self, case: Case) -> SkippedCase | None:
        """Explain why a case is left out: simulated processes share the memory of one real machine."""
        limit = self.facts.shared_memory_bytes
        needed = estimate_shared_bytes(case.routine, case.processes, case.bytes)
        if not limit or needed <= limit:
            return None
        sizes = f"{needed / 1e9:.3g} GB, and the simulated processes share {limit / 1e9:.3g} GB"
        return SkippedCase(case, f"it needs {sizes} (shared_memory_bytes of the partition)")

    @run_before("run")
    def set_command(self):
        """Set the command, which writes its exit code to a file, because not every scheduler reports it."""
        ending = quote_word(str(self.launch.ending(self.session)))
        self.executable = quote_word(str(getattr(self.mpicost, "program", "mpicost")))
        words = [*self.launch.options, f"--token={self.launch.token}"]
        self.executable_opts = [quote_word(word) for word in words]
        moment = self.line_of_moment(self.launch)
        self.prerun_cmds = [*self.prerun_cmds, self.line_of_limits(self.launch), moment]
        self.postrun_cmds = ["code=$?", moment, f"echo $code > {ending}", "exit $code"]

    def options_of(self, launch: PlannedLaunch) -> list[str]:
        """Return the options of mpicost, without the token of the launch."""
        options = [
            f"--routine={suite.format_routines(launch.cases)}",
            f"--trials={self.trials}",
            f"--rounds={launch.rounds}",
            f"--cache={self.cache}",
            f"--sync={self.sync}",
            f"--output={launch.records(self.session)}",
        ]
        # the order of the cases can matter in simulated time, and must repeat like the time
        settle = 0.0 if current_request().verbose else self.settle  # verbose launches are not timed
        options += [f"--seed={launch.number}" if launch.exact else f"--settle={settle:g}"]
        peers = self.chosen_peers()
        if peers and any(case.peer for case in launch.cases):
            options.append(f"--peers={','.join(map(str, peers))}")
        return options

    def chosen_routines(self) -> list[str]:
        wanted = self.routines or self.table
        return [routine for routine in self.table if routine in wanted and self.is_selected(routine)]

    def note_choices(self) -> None:
        """Record the routines, sizes, partners and caches that were chosen, and which of them are here."""
        measured = self.chosen_routines()
        sized = [
            routine for routine in measured if self.table[routine] != [0] and routine not in suite.CONTROLS
        ]
        if "routines" in self.set_by_setvar:
            note_choice("routines", self.routines, measured, self.table)
        if "sizes" in self.set_by_setvar:
            there = [n for n in self.sizes if any(suite.find_routine(routine).has_size(n) for routine in sized)]
            note_choice("sizes", self.sizes, there)
        if "peers" in self.set_by_setvar:
            note_choice("peers", self.peers, [n for n in self.peers if 0 < n < self.processes])
        if "cache" in self.set_by_setvar:
            note_choice("cache", [self.cache], suite.CACHES, suite.CACHES)

    def chosen_peers(self) -> list[int]:
        """Return the chosen partners, limited to existing processes; empty for all."""
        wanted = {p for routine in (self.wanted_routines() or {}).values() for p in routine.peers}
        return [peer for peer in sorted(wanted) or self.peers if peer < self.processes]

    def partners(self, routine: str) -> list[int]:
        """Return the partners with which a routine is measured; pairs use other processes in turn."""
        if not suite.find_routine(routine).in_pairs:
            return [0]
        return self.chosen_peers() or ([] if self.peers else list(range(1, self.processes)))

    def chosen_sizes(self, routine: str) -> list[int]:
        """Return the sizes at which a routine of the family is measured."""
        family_sizes = self.table[routine]
        wanted = (self.wanted_routines() or {}).get(routine)
        chosen = (wanted and wanted.sizes) or self.sizes
        asked = [size for size in chosen if suite.find_routine(routine).has_size(size)]
        kept = family_sizes == [0] or routine in suite.CONTROLS or not chosen
        limits = {} if self.routines or wanted else self.left_out_above
        return self.allowed_sizes(routine, family_sizes if kept else asked, limits)

    def all_cases(self) -> Iterator[Case]:
        """Return the cases of this launch and those that are skipped.

        They follow from the declaration alone, never from what a program printed.
        """
        exact = self.facts.exact
        for routine in self.chosen_routines():
            if exact and routine in suite.CONTROLS:
                continue
            for size in self.chosen_sizes(routine):
                for peer in self.partners(routine):
                    yield self.case(routine=routine, peer=peer, cache=self.cache, sync=self.sync, bytes=size)


class RequestedCheck(MpicostCheck, family=True):
    """A family whose routines are measured only if named: by ``--family``, or ``--routine``."""

    def chosen_routines(self) -> list[str]:
        wanted = self.wanted_routines() or {}
        return super().chosen_routines() if self.routines or wanted else []


class PartnerCheck(MpicostCheck, family=True):
    """A family of a paper in which rank 0 plays with one partner, unless others were chosen."""

    def chosen_peers(self) -> list[int]:
        """Return the chosen partners; without a choice the first rank of another node, or the last rank."""
        chosen = read_choice("peers", [])
        nearest = min(self.num_tasks_per_node, self.processes - 1)
        return [peer for peer in chosen if peer < self.processes] if chosen else [nearest]
