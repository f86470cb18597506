"""The application kernels of Taboada et al., measured on request.

``./plumbline run --program kernels``: all five at their sizes A, B and C. For nights, a launch of a few seconds
at size A: ``./plumbline nightly --family kernels``.
"""

import reframe as rfm
from reframe.core.backends import getlauncher
from reframe.core.builtins import parameter, run_after, run_before

from postprocess.model.case import Case
from postprocess.model.options import PROGRAM, WANTED
from postprocess.model.plan import PlannedLaunch, SkippedCase
from postprocess.model.routines import kernels as known
from postprocess.model.routines.kernels import KERNELS
from postprocess.model.routines.mpicost import WARM
from reframe_checks.common.layouts import count_usable_threads, list_kernel_layouts_on, list_on_all_partitions
from reframe_checks.common.mpicost import MpicostCheck, RequestedCheck
from reframe_checks.common.user_options import read_choice
from site_configs.schedulers.base import ThreadBinding, find_thread_binding
from site_configs.topology.layouts import RANKS_PER_CORE, Layout

#: allowed for a run, not expected
SECONDS_PER_RUN = {"A": 5.0, "B": 20.0, "C": 100.0}
#: the same for Series, which takes 1, 9 and 93 s on one core
SECONDS_OF_SERIES = {"A": 5.0, "B": 50.0, "C": 500.0}


@rfm.simple_test
class kernels(RequestedCheck):
    """Whole runs of each kernel, all verified, with and without the return of the results."""

    descr = "Application kernels as Taboada et al. measured them"
    program = KERNELS
    table = {name: [count] for name, count in known.BYTES.items()}
    layout = parameter(list_on_all_partitions(list_kernel_layouts_on))
    site_variables = tuple(
        variable
        for variable in MpicostCheck.site_variables
        if variable not in ("trials", "trial_rounds", "cache", "peers")
    )

    #: the trials that rules set are for mpicost
    trials = known.TRIALS if read_choice(WANTED) else read_choice("trials", known.TRIALS)
    trial_rounds = 1
    cache = WARM  # a run uses its data again and again

    def layouts_on(self, part) -> list[Layout]:
        return list_kernel_layouts_on(part)

    def chosen_routines(self) -> list[str]:
        """Return the kernels that were named; all of them if their program was."""
        if KERNELS in read_choice(PROGRAM.variable, []) and not self.routines:
            return [routine for routine in self.table if self.is_selected(routine)]
        return super().chosen_routines()

    def chosen_sizes(self, routine: str) -> list[int]:
        """Return the one size of a case, unless others were chosen."""
        return [size for size in self.table[routine] if not self.sizes or size in self.sizes]

    def allowed_trial_seconds(self) -> float:
        """Return the seconds that a run may take on average."""
        names = [case.routine.split("_") for case in self.all_cases()]
        seconds = [
            (SECONDS_OF_SERIES if kernel == "series" else SECONDS_PER_RUN)[size] for kernel, size, *_ in names
        ]
        return sum(seconds) / max(1, len(seconds))

    def value_of_references(self, name: str) -> int | None:
        """Return None: a kernel has the same trials in a night as in a calibration."""

    @property
    def ranks_per_core(self) -> int:
        """Ranks on a core: more than one only if each is bound to a hardware thread."""
        facts = self.facts
        dense = self.num_tasks_per_node == RANKS_PER_CORE * facts.cores_per_node
        return RANKS_PER_CORE if dense and count_usable_threads(facts) >= RANKS_PER_CORE else 1

    def find_binding(self) -> ThreadBinding:
        """Find the binding of ranks to hardware threads. Raises ValueError if none is known."""
        launcher_type = self.current_partition.launcher_type
        registered = "" if issubclass(launcher_type, getlauncher("local")) else launcher_type.registered_name
        launcher = self.environment_facts.launcher or registered
        return find_thread_binding(self.current_environ.extras.get("family", ""), launcher)

    def explain_impossible(self, case: Case) -> SkippedCase | None:
        """Explain why a case cannot be timed, also if its ranks cannot be bound as its layout needs."""
        if self.ranks_per_core > 1:
            try:
                self.find_binding()
            except ValueError as error:
                return SkippedCase(case, f"{RANKS_PER_CORE} ranks a core: {error}")
        return super().explain_impossible(case)

    def planned_launch(self, **more) -> PlannedLaunch:
        """Return a launch with its ranks per core, and why there are not more."""
        return super().planned_launch(**more, ranks_per_core=self.ranks_per_core, left_out=self.left_out())

    def left_out(self) -> str:
        """Explain in one line why no core has two ranks, unless layouts were chosen or time is simulated."""
        chosen = any(read_choice(name) for name in ("processes", "per_node", WANTED))
        if chosen or self.facts.exact or count_usable_threads(self.facts) >= RANKS_PER_CORE:
            return ""
        threads = self.facts.threads_per_core
        why = "--oversubscribe binds no ranks" if threads > 1 else "no hardware threads (threads_per_core is 1)"
        return f"{self.current_partition.name}: {KERNELS} with two ranks a core are skipped: {why}"

    @run_after("setup")
    def tell_scheduler_of_threads(self):
        """Request two processes per core, which launchers of schedulers read too."""
        if self.ranks_per_core > 1:
            self.num_tasks_per_core = self.ranks_per_core

    @run_before("run")
    def bind_to_hardware_threads(self):
        """Make the launcher bind each rank to a hardware thread; the records prove it."""
        if self.ranks_per_core > 1:
            binding = self.find_binding()
            self.job.launcher.options[:0] = binding.options
            self.env_vars.update(binding.variables)
