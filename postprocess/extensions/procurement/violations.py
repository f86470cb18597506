"""Violations of run rules: each has a code, a place and a fix. The list of codes is closed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Iterable
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from postprocess.base.formats import plural
from postprocess.base.grouping import group_pairs

#: What one line tells: violations that one fault gives many launches or rows, or all that have the code.
FAULT, KIND = "fault", "kind"


class Code(Enum):
    """What may be wrong with an offer: its code, if it is a reason to reject, the fix, what one line tells."""

    RULES_OTHER = ("rules-other", True, "the rules changed after the measurement; measure again")
    RULES_OLDER = ("rules-older", True, "measure by the rules of the buyer's last issue")
    TOLD_MISSING = ("told-missing", True, "write it into offer.toml")
    TOLD_DAMAGED = ("told-damaged", True, "mend offer.toml")
    CATEGORY_UNKNOWN = ("category-unknown", True, "measure in a category of the rules")
    PASS_TAKEN_OUT = ("pass-taken-out", True, "hand in every pass, including bad ones")
    SESSION_MISSING = ("session-missing", True, "hand in everything that offer run wrote")
    SESSION_UNLISTED = ("session-unlisted", True, "take out what offer run did not write")
    PLAN_DAMAGED = ("plan-damaged", True, "measure this pass again")
    LAUNCH_TWICE = ("launch-twice", True, "hand in each launch once")
    LAUNCH_CRASHED = ("launch-crashed", False, "offer run measures its rows again")
    LAUNCH_TIMEOUT = ("launch-timeout", False, "offer run measures its rows again")
    LAUNCH_INCOMPLETE = ("launch-incomplete", False, "offer run measures its rows again")
    LAUNCH_INCORRECT = ("launch-incorrect", True, "find out why and measure again")
    NOT_FINALISED = ("not-finalised", False, "every rank must reach MPI_Finalize")
    DATA_WRONG = ("data-wrong", True, "this MPI does not work here; take another")
    RECORDS_FOREIGN = ("records-foreign", True, "hand in the records of this launch")
    MPI_OTHER = ("mpi-other", True, "start it with the launcher of the MPI that is named", FAULT)
    LAYOUT_OTHER = ("layout-other", True, "give each node the processes that were asked for", FAULT)
    LAYOUT_NOT_ASKED = ("layout-not-asked", True, "measure the layouts of the rules", FAULT)
    CACHE_OTHER = ("cache-other", True, "measure with the caches of the rules")
    BINDING_SHARED = ("binding-shared", True, "bind each rank to a core of its own", FAULT)
    BINDING_UNKNOWN = ("binding-unknown", False, "measure so that the CPUs of each rank are recorded", FAULT)
    INTERPOSED = ("interposed", True, "load nothing in front of the MPI", FAULT)
    RANKS_DIFFER = ("ranks-differ", True, "load the same on all nodes")
    DELAYED = ("delayed", True, "measure without delays of the self-test", FAULT)
    SOURCE_OTHER = ("source-other", True, "build the official source, or name the patch in offer.toml", FAULT)
    PATCH_MISSING = ("patch-missing", True, "keep the patch below patches/")
    PATCH_VOID = ("patch-void", True, "keep what git diff writes, with its paths from the clone")
    PATCH_OTHER = ("patch-other", True, "name the patches that were built, all of them", FAULT)
    SOURCE_UNCHECKED = ("source-unchecked", False, "build it by Spack, or ask the bidder for its source")
    CHANGE_NOT_ALLOWED = ("change-not-allowed", True, "measure it in a category that allows it")
    FLAGS_UNCHECKED = ("flags-unchecked", False, "build it by Spack, or ask the bidder for its flags")
    FEW_LAUNCHES = ("few-launches", True, "offer run goes on where it stopped", FAULT)
    FEW_ITERATIONS = ("few-iterations", True, "repeat each launch as often as the rules ask", FAULT)
    ROW_MISSING = ("row-missing", True, "offer run measures it, where the machine can")
    FAMILY_MISSING = ("family-missing", True, "measure a row with this MPI")
    BUILD_UNKNOWN = ("build-unknown", True, "keep the folder programs/ of the session", FAULT)
    FACTS_MISSING = ("facts-missing", True, "the records must contain it; measure again", FAULT)
    MACHINE_DIFFERS = ("machine-differs", True, "measure every pass on the same kind of nodes")
    MACHINE_BUSY = ("machine-busy", False, "measure when nothing else runs", KIND)
    CLOCK_COARSE = ("clock-coarse", True, "let the kernel use a finer clock", FAULT)
    CLOCK_BACKWARDS = ("clock-backwards", True, "set the clock and measure again")
    FASTER_THAN_LIGHT = ("faster-than-light", True, "no message travels so fast; look at the records", KIND)
    FASTER_THAN_WIRE = (
        "faster-than-wire",
        True,
        "look at the records, or at link_gbit_per_s in offer.toml: all links of a node in one direction",
        KIND,
    )
    FASTER_THAN_MEMORY = (
        "faster-than-memory",
        True,
        "look at the records, or at memory_gbyte_per_s in offer.toml: what all memory of a node delivers",
        KIND,
    )
    FORM_MISSING = ("form-missing", True, "./plumbline offer sheet FOLDER writes the form")
    FORM_ALTERED = ("form-altered", True, "type in the open cells only")
    COMMITMENT_MISSING = ("commitment-missing", True, "type a number into committed", FAULT)
    COMMITMENT_IMPOSSIBLE = ("commitment-impossible", True, "type a number above 0 that is possible")
    COMMITMENT_BEYOND_LIMIT = ("commitment-beyond-limit", True, "commit to what the rules ask")
    PROJECTION_WITHOUT_MODEL = ("projection-without-model", True, "describe its model in the form")
    FORM_OTHER = ("form-other", True, "./plumbline offer sheet FOLDER writes it anew")
    LAUNCH_OFFERED = ("launch-offered", True, "measure the machine that was delivered", FAULT)
    LAUNCH_BEFORE = ("launch-before", True, "measure the machine after it was delivered", FAULT)
    LAUNCH_SHARED = ("launch-shared", True, "ask each bidder for launches of its own")
    PROTOCOL_OTHER = ("protocol-other", True, "./plumbline accept with its DIR as --output writes it anew")
    SEAL_MISSING = ("seal-missing", True, "./plumbline offer seal FOLDER")
    SEAL_BROKEN = ("seal-broken", True, "ask the bidder for the archive as it was signed")
    SIGNER_UNKNOWN = ("signer-unknown", True, "let somebody sign who is named in the signers' file")
    SIGNER_SAME = ("signer-same", False, "let the buyer sign what it accepts")
    FILE_UNCHECKED = ("file-unchecked", False, "nothing computes it: believe it as a letter")
    FILE_CHANGED = ("file-changed", True, "ask the bidder for the archive as it was signed")
    FILE_MISSING = ("file-missing", True, "ask the bidder for the archive as it was signed")
    FILE_ADDED = ("file-added", True, "ask the bidder for the archive as it was signed")
    FILE_SWAPPED = ("file-swapped", True, "ask the bidder for the archive as it was signed")

    word: str
    grave: bool
    fix: str
    once: str

    def __new__(cls, word: str, grave: bool, fix: str, once: str = "") -> Code:
        """Make a member whose value is what people are told of it: not what one line tells."""
        code = object.__new__(cls)
        code._value_ = word, grave, fix
        code.word, code.grave, code.fix, code.once = word, grave, fix, once
        return code


@dataclass(frozen=True)
class Violation:
    """Something that is wrong with an offer."""

    code: Code
    place: str
    text: str
    excess: float = 1.0  #: how many times a limit was passed: of several the largest is told

    @property
    def title(self) -> str:
        """Its code, and whether it is only noted."""
        return self.code.word if self.code.grave else f"{self.code.word} (noted)"

    @property
    def group(self) -> tuple[Code, str, str]:
        """What violations have in common that one line tells."""
        once = self.code.once
        return self.code, "" if once == KIND else self.text, "" if once else self.place

    def format(self, others: int = 0) -> str:
        """Format it in one line, with the number of other places of which the same holds."""
        more = f" and {others} more" if others else ""
        return f"{self.title}: {self.place}{more}: {self.text}; {self.code.fix}"

    def inside(self, folder: Path) -> Violation:
        """Return it with files named from their folder: the same words wherever the folder lies."""
        return replace(self, text=self.text.replace(f"{folder}/", ""))

    def below(self, folder: str) -> Violation:
        """Return it with its place named from the folder above."""
        return replace(self, place=f"{folder}/{self.place}")

    def as_entry(self) -> dict[str, object]:
        """Return it for programs."""
        return {
            "code": self.code.word,
            "reject": self.code.grave,
            "place": self.place,
            "text": self.text,
            "fix": self.code.fix,
        }


def format_violations(found: Iterable[Violation]) -> list[str]:
    """Format violations, one line for all launches, passes or rows that one fault has hit."""
    return format_groups((violation, violation.group) for violation in found)


def format_groups(found: Iterable[tuple[Violation, Hashable]]) -> list[str]:
    """Format each group in a line: the violation that passes its limit by most, and how many others."""
    groups = group_pairs((group, violation) for violation, group in found)
    return [max(each, key=lambda one: one.excess).format(len(each) - 1) for each in groups.values()]


def is_rejected(found: Iterable[Violation]) -> bool:
    """Return whether any of them is a reason to reject."""
    return any(violation.code.grave for violation in found)


def count_broken(found: Iterable[Violation]) -> dict[str, int]:
    """Count how often each rule was broken that is a reason to reject, by its code."""
    return dict(Counter(violation.code.word for violation in found if violation.code.grave))


def describe_broken(found: Iterable[Violation]) -> str:
    """Describe which rules were broken and how often: ``delayed 5 times, mpi-other once``."""
    return ", ".join(f"{word} {times(count)}" for word, count in count_broken(found).items())


def list_broken(found: Iterable[Violation]) -> list[str]:
    """List the rules that were broken, one line each: the first place, in how many others, and the fix."""
    return format_groups((violation, violation.code) for violation in found if violation.code.grave)


def times(count: int) -> str:
    """Write how often."""
    return "once" if count == 1 else plural(count, "time")


def describe_violations(found: list[Violation]) -> str:
    grave = sum(violation.code.grave for violation in found)
    noted = len(found) - grave
    if not found:
        return "no violation"
    words = [plural(grave, "violation")] if grave else []
    words += [f"{noted} noted"] if noted else []
    return ", ".join(words)
