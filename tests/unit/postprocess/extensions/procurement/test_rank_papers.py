"""Four simulated machines as bidders under the Luecke set, beside the ratios to a T3E that the papers print."""

import csv
import math
import statistics

import pytest

from postprocess.extensions.procurement.comparison import (
    OfferComparison,
    OfferedValue,
    PresentSystem,
    RankedOffer,
    compare_offers,
)
from postprocess.extensions.procurement.rules.rules import Rules, lint_text, read_rule_set
from postprocess.references.reference_file import load_references
from tests.support.paths import ROOT

PRESENT, PROCESSES = "torus", 128
#: Stand-ins, and whose printed ratios they have; the fat tree is a machine of today.
BIDDERS = {
    "hypercube": "Origin 2000",
    "myrinet": "Myrinet Linux Cluster",
    "ethernet": "Ethernet Linux Cluster",
    "fattree": "",
}


def luecke() -> Rules:
    rules, faults = lint_text(read_rule_set("luecke"))
    assert rules and not faults
    return rules


def times(partition: str) -> PresentSystem:
    """Seconds of the rows of the rules at the papers' number of processes, on all cores of their nodes."""
    folder = ROOT / "reference_data" / "simulated" / partition
    known = load_references(folder / "simgrid-mpich.tsv", "simulated", partition, "simgrid-mpich").values()
    every = {
        (reference.case.routine, reference.case.bytes): reference.center
        for reference in known
        if reference.case.processes == PROCESSES and not reference.case.peer
    }
    return {
        (case.name, size): every[case.routine, size]
        for case in luecke().case
        for size in case.bytes
        if (case.routine, size) in every and case.routine != "pingpong"
    }


@pytest.fixture(scope="module")
def compared() -> OfferComparison:
    offers = [
        RankedOffer(
            name,
            0,
            {
                place: OfferedValue("s", value, None, f"mpi-of-{name}", "baseline")
                for place, value in times(name).items()
            },
        )
        for name in BIDDERS
    ]
    return compare_offers(luecke(), offers, times(PRESENT))


def printed() -> dict[tuple[str, str, int], float]:
    """Times as slow as the T3E-600, by machine, routine and bytes."""
    path = ROOT / "reference_data" / "historical" / "luecke2001_ratios.csv"
    with path.open() as file:
        return {
            (row["machine"], row["routine"], int(row["bytes"])): float(row["ratio"])
            for row in csv.DictReader(file)
            if int(row["processes"]) == PROCESSES
        }


def test_ratios_are_those_of_the_times_and_the_machine_of_today_is_first(compared) -> None:
    assert compared.names == ("fattree", "hypercube", "myrinet", "ethernet")
    assert compared.common >= 18
    present, own = times(PRESENT), {name: times(name) for name in BIDDERS}
    for row in compared.rows:
        place = row.case.name, row.bytes
        for name, offer in zip(compared.names, row.offers, strict=True):
            if place in own[name]:
                assert offer and offer.ratio == pytest.approx(present[place] / own[name][place])


def test_stand_ins_come_near_what_the_papers_print(compared) -> None:
    """Within a factor of four at the median row, and as near as two where only wires count: bcast."""
    known, distances = printed(), {}
    for row in compared.rows:
        for name, offer in zip(compared.names, row.offers, strict=True):
            told = known.get((BIDDERS[name], row.case.routine, row.bytes))
            if told and offer:
                distances[name, row.case.name, row.bytes] = abs(math.log(told * offer.ratio))
    assert len(distances) >= 20
    assert statistics.median(distances.values()) < math.log(4), distances
    own = [each for (_, case, _), each in distances.items() if case == "bcast"]
    assert len(own) == 6 and statistics.median(own) < math.log(2), own


def test_an_mpi_is_named_with_its_category_unless_that_is_the_usual_one() -> None:
    named = [OfferedValue("s", 1.0, None, "mpich", category).mpi for category in ("baseline", "optimised")]
    assert named == ["mpich", "mpich, optimised"]
