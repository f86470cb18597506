"""After an upgrade it is told which references no longer hold; its launches can be proposed as new ones."""

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from postprocess.base.errors import UsageError
from postprocess.base.progress import Progress
from postprocess.base.workdir import WorkDirectory
from postprocess.calibration import ledger
from postprocess.calibration.update import update_references
from postprocess.commands.references import propose_all, read_compared_launches
from postprocess.features.compare import data, decision
from postprocess.features.compare.data import ComparedSide, ReferenceEffects
from postprocess.features.compare.measure.passes import keep_for_references, note_effects
from postprocess.features.compare.text import format_effects, propose_references
from postprocess.model.session import Selection, Session
from postprocess.references import reference_file
from tests.support.factories.comparison import HEADER
from tests.support.factories.launch import CASES, PLACE, finished
from tests.support.factories.ledger import launch
from tests.support.faults import plants

NEW_SIDE = ComparedSide("new", PLACE.environment)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    found = tmp_path / "dossier" / data.FILE
    data.append_record(found, HEADER)
    return found


def test_references_of_another_library_become_not_comparable(tmp_path: Path, path: Path) -> None:
    session = tmp_path / "20261123T010000Z-1"
    done = finished(session)
    (alike,) = ledger.collect_launches(ledger.CalibrationHeader(session.name), session, [done])
    other = {**alike.circumstances, "mpi_library": "MPICH Version: 4.3.2"}
    update_references(tmp_path / "references", [replace(alike, circumstances=other)])
    context = SimpleNamespace(reference_roots=[tmp_path / "references"])
    old = ComparedSide("old", PLACE.environment)
    effects = note_effects(context, path, old, [done])  # type: ignore[arg-type]
    assert effects.outdated.keys() == {case.key for case in CASES} and not effects.holding
    assert all("mpi_library" in why for why in effects.outdated.values())
    assert effects.without == len(CASES)
    assert data.read_comparison(path).effects == effects

    update_references(tmp_path / "other", [alike])
    context = SimpleNamespace(reference_roots=[tmp_path / "other"])
    held = note_effects(context, path, old, [done])  # type: ignore[arg-type]
    assert (held.holding, held.without, held.outdated) == (len(CASES), 0, {})


def test_what_becomes_of_references_is_told() -> None:
    effects = ReferenceEffects("mpich-4", {"a": "library", "b": "library", "c": "trials"}, 1, 4)
    assert format_effects(effects) == [
        "references of mpich-4: 3 of 4 become not-comparable with the new side",
        "2 references: library: a, b",
        "1 reference: trials: c",
    ]
    (step,) = propose_references(effects, Path("/of mine"))
    assert step.words == "4 cases of the new side without a comparable reference"
    assert step.command == "./plumbline references propose --compare '/of mine'"
    found = format_effects(ReferenceEffects("mpich-4"))
    assert found == ["references: mpich-4 has none of these cases"]
    assert format_effects(None) == propose_references(None) == propose_references(ReferenceEffects("a")) == []


def keep(tmp_path: Path, side: ComparedSide) -> list[ledger.CalibrationLaunch]:
    session = Session(tmp_path / "20261123T010000Z-1", "compare", "local", (), False)
    done = finished(session.directory)
    keep_for_references(tmp_path / "dossier", Selection(Path("s")), session, side, [done])
    return ledger.read_ledger(tmp_path / "dossier")


def test_launches_of_the_new_side_are_kept_with_its_settings(tmp_path: Path) -> None:
    assert keep(tmp_path, replace(NEW_SIDE, plant="slower-10:bcast")) == []
    (kept,) = keep(tmp_path, replace(NEW_SIDE, set_env={"UCX_TLS": "tcp"}))
    assert kept.values.keys() == {case.key for case in CASES}
    assert "UCX_TLS" in str(kept.by_hand)


def test_new_references_are_proposed_from_the_new_side(work: WorkDirectory, tmp_path: Path) -> None:
    dossier = tmp_path / "dossier"
    for day in range(1, 4):
        ledger.append_launches(dossier, f"s{day}", [launch(2e-6, day)])
    told = read_compared_launches(dossier)
    assert propose_all(work, None, None, None, Progress(), more=told) == 0
    written = reference_file.locate_references(work.root / "proposal", *PLACE)
    proposed = reference_file.load_references(written, *PLACE)[CASES[0]]
    assert (proposed.launches, proposed.center) == (3, pytest.approx(2e-6))
    assert not ledger.read_ledger(work.root)  # nothing moves by itself


@plants("use", "a comparison without launches of a new side", "`references propose --compare`", "", 2,
        "has no launch of a new side")  # fmt: skip
def test_a_rejected_side_and_a_folder_without_launches_are_refused(tmp_path, declared):
    with declared.raises(UsageError):
        read_compared_launches(tmp_path)
    ledger.append_launches(tmp_path, "s1", [launch()])
    rejected = decision.SignedDecision(decision.REJECTED, "", "too slow", (), "2026-11-23T00:00:00Z")
    decision.write_decision(tmp_path, rejected)
    with pytest.raises(UsageError, match="its new side was rejected: too slow"):
        read_compared_launches(tmp_path)
