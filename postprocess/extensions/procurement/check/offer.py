"""Check an offer whole: rules, passes, launches and rows. Bidder and buyer run the same code."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.formats import format_percent, plural, size
from postprocess.calibration.machine_load import BUSY_SHARE
from postprocess.extensions.procurement.check.builds import (
    OfferSources,
    allows,
    check_builds,
    check_flags,
    check_patches,
)
from postprocess.extensions.procurement.check.data import (
    RULES,
    SESSIONS,
    TELL,
    OfferPass,
    StoredOffer,
    ToldFacts,
    locate_session,
    read_offer,
    read_told,
)
from postprocess.extensions.procurement.check.evidence import (
    TIMES,
    LaunchEvidence,
    MeasuredRow,
    collect_rows,
    plan_of,
)
from postprocess.extensions.procurement.check.launch import check_launch
from postprocess.extensions.procurement.check.official import OfficialSource
from postprocess.extensions.procurement.check.violations import Code, Violation
from postprocess.extensions.procurement.rules.lint import count_needed_launches, read_rules
from postprocess.extensions.procurement.rules.rules_data import TOLD, Rules, hash_rules
from postprocess.judging.outcome import CLOCKS_DIFFER, read_moment, read_span
from postprocess.model.plan import read_plan


@dataclass(frozen=True)
class OpenedOffer:
    """An offer with all that is computed from its files, each thing once."""

    stored: StoredOffer
    rules: Rules
    told: ToldFacts
    evidence: tuple[LaunchEvidence, ...]
    damage: tuple[Violation, ...]  #: what could not be read

    @cached_property
    def rows(self) -> list[MeasuredRow]:
        """The rows that were measured."""
        return collect_rows(self.rules, self.evidence)


def open_offer(folder: Path) -> OpenedOffer:
    """Open the folder of an offer.

    :raises UsageError: if it has no rules or no passes that can be read
    """
    stored = read_offer(folder)
    rules = read_rules(folder / RULES)
    damage: list[Violation] = []
    try:
        told = read_told(folder)
    except UsageError as error:
        told = ToldFacts()
        damage.append(Violation(Code.TOLD_DAMAGED, TELL, str(error)))
    evidence = []
    for done in stored.passes:
        session = locate_session(folder, done.session)
        if not (session / "plan").is_dir():
            damage.append(Violation(Code.SESSION_MISSING, done.session, "has no plan"))
            continue
        try:
            launches = read_plan(session)
        except UsageError as error:
            damage.append(Violation(Code.PLAN_DAMAGED, done.session, str(error)))
            continue
        evidence += [LaunchEvidence(done, launch, session) for launch in launches if launch.cases]
    return OpenedOffer(stored, rules, told, tuple(evidence), tuple(damage))


def check_offer(offer: OpenedOffer, official: OfficialSource, issued: str = "") -> list[Violation]:
    """Check an offer.

    :param issued: SHA-256 of the buyer's own rules; empty if only those of the folder are known
    :raises UsageError: if patches are named, and there is no git to check them by
    """
    sources = OfferSources(official, offer.stored.folder, offer.told.patch)
    found = [
        *offer.damage,
        *check_rules(offer, issued),
        *check_told(offer),
        *check_patches(sources),
        *check_passes(offer),
        *check_builds(offer.evidence),
        *check_flags(offer.evidence, offer.rules),
    ]
    for each in offer.evidence:
        found += check_launch(each, offer.rules, offer.told, sources)
    found += check_twice(offer.evidence)
    found += check_times(offer.evidence)
    found += check_machines(offer.evidence)
    found += check_layouts(offer)
    found += check_rows(offer)
    return list(dict.fromkeys(violation.inside(offer.stored.folder) for violation in found))


def check_rules(offer: OpenedOffer, issued: str) -> Iterator[Violation]:
    """Check that the offer was measured by the rules that it holds, and that these are the buyer's."""
    own = hash_rules(offer.stored.folder / RULES)
    if own != offer.stored.header.rules:
        what = f"is {own[:16]}, and {offer.stored.header.rules[:16]} when it was measured"
        yield Violation(Code.RULES_OTHER, RULES, what)
    if issued and own != issued:
        yield Violation(Code.RULES_OLDER, RULES, f"is {own[:16]}, and the buyer's {issued[:16]}")


def check_told(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that everything is told that the rules ask for."""
    for name in offer.rules.tell:
        if not getattr(offer.told, name) or (not TOLD[name] and not getattr(offer.told, name).strip()):
            yield Violation(Code.TOLD_MISSING, TELL, f"{name}: is not told")


def check_passes(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that no pass was taken out or came from elsewhere, and what each tells of itself."""
    stored = offer.stored
    for number in stored.broken:
        what = "the line before it is not the one that was there"
        yield Violation(Code.PASS_TAKEN_OUT, f"passes.jsonl, pass {number}", what)
    listed = {each.session for each in stored.passes}
    folder = stored.folder / SESSIONS
    here = {path.name for path in folder.iterdir()} if folder.is_dir() else set()
    for name in sorted(here - listed):
        yield Violation(Code.SESSION_UNLISTED, f"{SESSIONS}/{name}", "no pass has it")
    before = ""
    for each in stored.passes:
        yield from check_pass(each, offer.rules)
        if each.ended_utc < each.began_utc or each.began_utc < before:
            what = f"began {each.began_utc}, ended {each.ended_utc}, the one before {before or '-'}"
            yield Violation(Code.CLOCK_BACKWARDS, f"pass {each.number}", what)
        before = each.ended_utc


def check_pass(each: OfferPass, rules: Rules) -> Iterator[Violation]:
    """Check what a pass tells of itself."""
    place = f"pass {each.number}"
    if each.category not in rules.category:
        yield Violation(Code.CATEGORY_UNKNOWN, place, f"{each.category} is in no rule")
    elif each.set_env and not allows(rules, each.category, "environment"):
        names = sorted({name for own in each.set_env.values() for name in own})
        what = f"{', '.join(names)} set, and {each.category} allows no variables"
        yield Violation(Code.CHANGE_NOT_ALLOWED, place, what)
    if each.others is not None and each.others > BUSY_SHARE:
        what = f"other processes used {format_percent(each.others)} of the machine"
        yield Violation(Code.MACHINE_BUSY, place, what)


def check_twice(evidence: Sequence[LaunchEvidence]) -> Iterator[Violation]:
    """Check that no launch is handed in twice: tokens are drawn anew for each."""
    tokens = Counter(each.launch.token for each in evidence if each.launch.token)
    for each in evidence:
        if tokens[each.launch.token] > 1:
            yield Violation(Code.LAUNCH_TWICE, each.place, "its token is in another launch too")
        if not each.launch.token:
            yield Violation(Code.RECORDS_FOREIGN, each.place, "its plan has no token")
    before: dict[str, str] = {}
    for each in evidence:
        marks = [mark for mark in each.marks if mark.startswith(TIMES)]
        if twice := next((before[mark] for mark in marks if mark in before), ""):
            yield Violation(Code.LAUNCH_TWICE, each.place, f"its trials are those of {twice}")
        before |= dict.fromkeys(marks, each.place)


def check_times(evidence: Sequence[LaunchEvidence]) -> Iterator[Violation]:
    """Check that each launch was made in the time of its pass."""
    for each in evidence:
        span = read_span(each.launch, each.session)
        began, ended = (read_moment(text) for text in (each.done.began_utc, each.done.ended_utc))
        if span and not began - CLOCKS_DIFFER <= span[0] <= span[1] <= ended + CLOCKS_DIFFER:
            what = f"was not launched from {each.done.began_utc} to {each.done.ended_utc}"
            yield Violation(Code.RECORDS_FOREIGN, each.place, f"{what}, as its pass tells")


def check_machines(evidence: Sequence[LaunchEvidence]) -> Iterator[Violation]:
    """Check that all launches ran on one kind of processor."""
    seen: dict[str, LaunchEvidence] = {}
    for each in evidence:
        name = each.run.get("cpu_model") or ""
        if name and not each.launch.exact:
            seen.setdefault(name, each)
    if len(seen) > 1:
        (one, _), (two, other), *_ = seen.items()
        yield Violation(Code.MACHINE_DIFFERS, other.place, f"on {two}, others on {one}")


def check_layouts(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that launches have the layouts that the rules ask for on that machine."""
    for each in offer.evidence:
        plan = plan_of(offer.rules, each.done)
        known = {(item.case.program, str(item.asked.layout)) for item in plan.possible}
        layout = each.launch.cases[0].layout
        if (each.launch.program, layout) not in known:
            yield Violation(Code.LAYOUT_NOT_ASKED, each.place, f"{layout} is in no case of the rules")


def check_rows(offer: OpenedOffer) -> Iterator[Violation]:
    """Check that every row was measured, often enough, and with the families that the rules name."""
    rules, machine = offer.rules, offer.stored.passes[-1].machine if offer.stored.passes else None
    if machine is None:
        yield Violation(Code.ROW_MISSING, "passes.jsonl", "nothing was measured")
        return
    measured = {(row.key.case, row.key.bytes) for row in offer.rows}
    plan = plan_of(rules, offer.stored.passes[-1])
    for asked in plan.cases:
        for count in asked.case.bytes:
            if (asked.case.name, count) in measured or asked.case.demand == "information":
                continue
            why = asked.asked.problem or "no launch has a value of it"
            yield Violation(Code.ROW_MISSING, f"{asked.case.name} {size(count)}", why)
    for row in offer.rows:
        needed = count_needed_launches(rules, row.rule, machine)
        if len(row.values) < needed:
            what = f"{plural(len(row.values), 'launch', 'es')}, and {needed} are asked for"
            yield Violation(Code.FEW_LAUNCHES, row.key.key, what)
    for family in rules.one_row_with:
        if not any(row.family == family for row in offer.rows):
            yield Violation(Code.FAMILY_MISSING, family, "no row was measured with it")
