"""Measure what rules ask for, pass after pass, into one folder that goes on where it stopped."""

import os
import shutil
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError
from postprocess.base.formats import duration, plural, size, utc_now
from postprocess.base.progress import Progress
from postprocess.base.version import VERSION
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration.machine_load import start_load_monitor
from postprocess.extensions.procurement import offer
from postprocess.extensions.procurement.builds import OfficialSource
from postprocess.extensions.procurement.rules import layouts
from postprocess.extensions.procurement.rules.rules import Rules, hash_rules, read_rules
from postprocess.extensions.procurement.run_rules import check_offer
from postprocess.extensions.procurement.violations import Code, list_broken
from postprocess.judging.evaluate import evaluate_launches
from postprocess.model.launch import FinishedLaunch
from postprocess.model.options import PARTITION
from postprocess.model.plan import PlannedLaunch
from postprocess.model.session import Request, Selection, Session
from postprocess.model.verdict import CaseResult
from postprocess.references.catalog import ReferenceCatalog
from postprocess.runner.reframe_pass import PassRecord, make_plan
from postprocess.session.lifecycle.context import (
    SessionContext,
    describe_clock,
    measure_in_session,
    open_session_context,
    report_plan,
)
from postprocess.session.lifecycle.finish import keep_spack_locks, store_trials
from postprocess.session.lifecycle.validation import verify_data
from site_configs.validation.rules import list_entries, select_sound
from site_configs.validation.site_files import read_usable_site

MODE = "offer"
FIRMWARE = Path("/sys/class/dmi/id/bios_version")
#: What rows of an offer say themselves, and what further passes mend.
MENDED_BY_PASSES = (Code.FEW_LAUNCHES, Code.ROW_MISSING, Code.FAMILY_MISSING)
VAIN = 3  #: passes in a row that add nothing to a row, after which it is given up


@dataclass(frozen=True)
class OfferDemand:
    """What the user asked for beyond a session's request."""

    rules: Path
    folder: Path
    category: str
    nics: int = 1
    mode: str = MODE
    verifies: bool = False  #: whether OSU and IMB verify their data, with the first pass
    least: int | None = None  #: launches of each row, in the place of the rules'


def run_offer(work: WorkDirectory, request: Request, demand: OfferDemand, progress: Progress) -> int:
    """Measure an offer, or go on with one. Returns the number of passes that were made."""
    rules = read_rules(demand.rules)
    if demand.category not in rules.category:
        choice = ", ".join(rules.category)
        raise UsageError(f"--category {demand.category}: {demand.rules} has {choice}")
    with work.held():
        context = open_session_context(work, request, progress)
        plan = plan_on_site(context, rules, demand.nics)
        if not plan.possible:
            raise UsageError(f"{demand.rules}: nothing is possible: {plan.impossible[0].problem}")
        begin_folder(context, demand, plan)
        return OfferBench(context, rules, plan, demand).run()


def begin_folder(context: SessionContext, demand: OfferDemand, plan: layouts.OfferPlan) -> None:
    """Begin the folder of an offer, or find the one that is there.

    :raises UsageError: if it holds something else
    """
    folder, rules = demand.folder, hash_rules(demand.rules)
    if (folder / offer.PASSES).exists():
        offer.open_journal(folder).truncate_unfinished()
        header = offer.read_offer(folder).header
        asked = (rules, context.request.site, plan.machine.partition)
        if (header.rules, header.site, header.partition) != asked:
            raise UsageError(f"{folder}: holds an offer by other rules or of another machine; choose another")
        context.progress.say(f"going on with {folder}")
        return
    if folder.exists() and any(folder.iterdir()):
        raise UsageError(f"{folder}: is not empty and holds no offer; choose another folder")
    files.replace_files(
        {
            folder / offer.RULES: files.read_regular(demand.rules),
            folder / offer.TELL: offer.format_told_template().encode(),
        }
    )
    offer.append_line(
        folder,
        offer.OfferHeader(
            offer.SCHEMA, rules, context.request.site, plan.machine.partition, utc_now(), VERSION
        ),
    )


@dataclass
class OfferBench:
    """What every pass needs."""

    context: SessionContext
    rules: Rules
    plan: layouts.OfferPlan
    demand: OfferDemand
    #: Launches of each case, by name, in the place of those of the rules; cases that are not in it get none.
    targets: Mapping[str, int] | None = None
    wrong: list[str] = field(default_factory=list)  #: data that is not right, in lines
    dead: set[str] = field(default_factory=set)  #: environments of which no launch of the first pass ended well
    alive: set[str] = field(default_factory=set)  #: the others; empty before the first pass

    def run(self) -> int:
        """Measure passes until every row has its launches, or nothing more comes. Returns their number.

        An MPI of which no launch of the first pass ended well has no part in the others.
        """
        self.remove_unlisted()
        made, vain = 0, Counter[str]()
        while names := self.list_open_cases(vain):
            before = self.count_launches()
            self.run_pass(names, first=made == 0)
            made += 1
            if made == 1:
                self.warn()
            after = self.count_launches()
            vain.update(name for name in names if after[name] <= before[name])
        for name, times in vain.items():
            if times >= VAIN:
                self.context.progress.note(f"{name}: given up after {times} passes without a value")
        return made

    def warn(self) -> None:
        """Note the run rules that are broken and that no further pass mends, before hours are spent on it."""
        found = check_offer(self.open_measured(), OfficialSource(self.context.work.source))
        later = (*MENDED_BY_PASSES, Code.TOLD_MISSING)
        for line in list_broken(violation for violation in found if violation.code not in later):
            self.context.progress.note(f"a reason to reject: {line}")

    def open_measured(self) -> offer.OpenedOffer:
        return offer.open_offer(self.demand.folder)

    def count_launches(self) -> Counter[str]:
        """Count the launches of each case: of its row with fewest, in this category."""
        found: dict[str, list[int]] = {}
        for row in self.open_measured().rows:
            if row.key.category == self.demand.category:
                found.setdefault(row.key.case, []).append(len(row.values))
        return Counter({name: min(counts) for name, counts in found.items()})

    def list_open_cases(self, vain: Counter[str]) -> list[str]:
        """List the cases that still need launches, and that an MPI may measure."""
        counts = self.count_launches()
        families = self.list_families()
        return [
            case.case.name
            for case in self.plan.possible
            if counts[case.case.name] < self.needed(case.case.name)
            and vain[case.case.name] < VAIN
            and (families is None or case.case.mpi in families)
        ]

    def list_families(self) -> set[str] | None:
        """List what rules may call the MPIs that are left; None while all of them are."""
        if not self.dead:
            return None
        evidence = self.open_measured().evidence
        found = {each.family for each in evidence if each.launch.environment in self.alive}
        return found | {"any"} if found else found

    def needed(self, name: str) -> int:
        if self.targets is not None and name not in self.targets:
            return 0
        if self.plan.machine.exact:
            return 1
        if self.targets is not None:
            return self.targets[name]
        least = self.demand.least or 0
        case = self.rules.find_case(name)
        return max(least, layouts.count_needed_launches(self.rules, case, self.plan.machine))

    def run_pass(self, names: Sequence[str], first: bool) -> None:
        """Launch what is open once, and keep all that it leaves."""
        context, progress = self.context, self.context.progress
        session, reframe = context.open_session(self.demand.mode)
        selection = select_offer(context, self.rules, self.plan, names)
        if self.dead:
            selection = replace(selection, environments=sorted(self.alive))
        since, began = start_load_monitor(), utc_now()
        planned = None
        if first:
            with progress.phase("set-up"):
                planned = make_plan(reframe, selection)
            report_plan(planned, progress)
            for line in find_unplanned(self.plan, planned, names):
                progress.say(f"  {line}")
        _, record = measure_in_session(context, reframe, "running", selection, planned)
        verified = self.verify(selection, record) if first and self.demand.verifies else []
        others = since.share() if context.prepared.inventory else None
        results = self.keep(session, record, began, others, verified)
        launched = [run for run in record.finished if run.launch.cases]
        ended = sum(run.outcome.records is not None for run in launched)
        number = len(offer.read_offer(self.demand.folder).passes)
        progress.say(
            f"pass {number}: {ended} of {plural(len(launched), 'launch', 'es')} ended well "
            f"({duration(sum_job_seconds(launched))})"
        )
        if first and self.demand.mode == MODE:
            self.leave_out_dead(launched, results)
        for line in describe_failed([run for run in launched if run.launch.environment not in self.dead]):
            progress.say(f"  {line}")

    def leave_out_dead(self, launched: Sequence[FinishedLaunch], results: Sequence[CaseResult]) -> None:
        """Leave the MPIs of which no launch ended well out of further passes, and say so."""
        everywhere = {run.launch.environment for run in launched}
        self.alive = {run.launch.environment for run in launched if run.outcome.records is not None}
        self.dead = everywhere - self.alive
        for environment in sorted(self.dead):
            failed = [run for run in launched if run.launch.environment == environment]
            own = (result for result in results if result.case.environment == environment and result.rerun)
            again = next((f"; again: {result.rerun}" for result in own), "")
            what = "; ".join(describe_failed(failed))
            self.context.progress.note(f"{environment} is left out of further passes: {what}{again}")

    def verify(self, selection: Selection, record: PassRecord) -> list[str]:
        """Let OSU and IMB verify their data; what is wrong, and what is not verified, in lines."""
        verified = verify_data(self.context, selection, record.finished, afresh=True)
        wrong = list(verified.describe_wrong())
        self.wrong += wrong
        lines = [*wrong, *verified.describe()]
        for line in lines:
            self.context.progress.note(line)
        return lines

    def keep(
        self,
        session: Session,
        record: PassRecord,
        began: str,
        others: float | None,
        verified: Sequence[str] = (),
    ) -> list[CaseResult]:
        """Store the trials of a pass, copy its files, and write it down last: else it does not count.

        Returns what came of each case.

        :param verified: what came of launches that verify data, in lines
        """
        context, folder = self.context, self.demand.folder
        results = evaluate_launches(
            record.finished, ReferenceCatalog(), context.request.site, context.request.rerun_options
        )
        store_trials(context.work, session, record.finished, results)
        keep_spack_locks(context.work, session, record.finished)
        target = offer.locate_session(folder, session.name)
        for name in offer.KEPT:
            if (session.directory / name).is_dir():
                shutil.copytree(session.directory / name, target / name)
        stored = offer.read_offer(folder)
        offer.append_line(
            folder,
            offer.OfferPass(
                number=len(stored.passes) + 1,
                previous=offer.hash_last_line(folder),
                session=session.name,
                category=self.demand.category,
                machine=self.plan.machine,
                began_utc=began,
                ended_utc=utc_now(),
                command=tuple(context.request.command),
                set_env=context.request.selection.set_env,
                firmware=read_firmware(),
                others=others,
                notes=(*describe_clock(context.work), *verified),
            ),
        )
        return results

    def remove_unlisted(self) -> None:
        """Remove what an interrupted pass left: it is measured again."""
        folder = self.demand.folder / offer.SESSIONS
        listed = {each.session for each in offer.read_offer(self.demand.folder).passes}
        for path in folder.iterdir() if folder.is_dir() else ():
            if path.name not in listed:
                shutil.rmtree(path)


def sum_job_seconds(launched: Sequence[FinishedLaunch]) -> float:
    """Sum the seconds of jobs: each start of a job tells those of the whole job."""
    return sum({run.directory: run.seconds for run in launched}.values())


def describe_failed(launched: Sequence[FinishedLaunch]) -> list[str]:
    """Describe why launches did not end well, each reason once."""
    reasons = Counter(run.outcome.reason for run in launched if run.outcome.records is None)
    return [f"{plural(count, 'launch', 'es')}: {reason}" for reason, count in reasons.items()]


def read_firmware() -> str:
    """Read the version of the firmware of the machine where the session runs; empty where it is not told."""
    try:
        return files.read_text(FIRMWARE, errors="replace").strip()
    except OSError:
        return ""


def locate_folder(folder: Path | None, work: WorkDirectory, name: str) -> Path:
    """Return the folder of an offer or acceptance: as it was asked for, else in the work directory."""
    return Path(os.path.abspath(folder or work.root / name))


def read_machine_facts(context: SessionContext, nics: int = 1) -> layouts.MachineFacts:
    """Read what layouts rest on, of the one partition that was chosen or that there is.

    :raises UsageError: if there are several, or the one chosen is not there
    """
    selection = context.request.selection
    reading = read_usable_site(context.work, selection.site)
    found = {entry.name: entry for entry in select_sound(reading, list_entries(reading, "partition"))}
    wanted = PARTITION.wanted(selection.choice) or tuple(found)
    if len(wanted) != 1 or wanted[0] not in found:
        choice = ", ".join(sorted(found)) or "none"
        asked = ",".join(PARTITION.wanted(selection.choice))
        raise UsageError(
            f"{PARTITION.flag} {asked}: an offer is about one partition; {context.request.site} has {choice}"
            if asked
            else f"an offer is about one partition; choose one by {PARTITION.flag}: "
            f"{context.request.site} has {choice}"
        )
    extras = found[wanted[0]].extras
    return layouts.MachineFacts(
        wanted[0],
        int(extras["nodes"]),
        int(extras["cores_per_node"]),
        nics,
        int(extras["most_processes"]),
        bool(extras["exact"]),
    )


def select_offer(
    context: SessionContext, rules: Rules, plan: layouts.OfferPlan, names: Sequence[str] | None = None
) -> Selection:
    """Select what a pass of an offer measures: each case once."""
    choice = dict(layouts.build_offer_choice(rules, plan, names))
    return replace(context.request.selection, choice=choice, launches=1, tag="nightly")


def find_unplanned(
    plan: layouts.OfferPlan, planned: Sequence[PlannedLaunch], names: Sequence[str] | None = None
) -> Iterator[str]:
    """Find what the machine could measure by its size, and no launch does, with the reason.

    :param names: of the cases that were asked for; None for all
    """
    cases = [case for launch in planned for case in launch.cases]
    skips = [skip for launch in planned for skip in launch.skips]
    for each in plan.possible:
        for count in each.case.bytes if names is None or each.case.name in names else ():
            if any(each.matches(case, count) for case in cases):
                continue
            reason = next((s.reason for s in skips if each.matches(s.case, count)), "")
            fix = f"{each.case.program} has no {each.case.routine} of {size(count)} at this layout"
            yield f"{each.case.name} {size(count)}: not measured: {reason or fix}"


def plan_on_site(context: SessionContext, rules: Rules, nics: int) -> layouts.OfferPlan:
    """Plan rules on the site of a context. Raises UsageError as :func:`read_machine_facts` does."""
    return layouts.plan_offer(rules, read_machine_facts(context, nics))
