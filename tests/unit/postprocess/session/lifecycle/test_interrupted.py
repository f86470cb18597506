"""Sessions that were killed before they could store what they measured."""

from __future__ import annotations

from pathlib import Path

from postprocess.base.workdir import WorkDirectory
from postprocess.model.interposed import TOLD
from postprocess.results import store
from postprocess.results.query import read_headlines
from postprocess.session.lifecycle.interrupted import IMPORTED, LOOKED_AT, MODE, store_interrupted
from tests.support.factories import record
from tests.support.factories.launch import leave, planned


def test_what_nobody_has_stored_is_stored_once_and_is_no_night(tmp_path: Path) -> None:
    work = WorkDirectory(tmp_path, tmp_path / "home")
    names = [f"20261124T09000{number}Z-1" for number in range(6)]
    damaged, killed, stored, imported, delayed, summarised = (work.sessions / x for x in names)
    for session in (damaged, killed, stored, imported, delayed, summarised):
        test = IMPORTED if session is imported else "luecke_0"
        told = {"environment": {TOLD: "1"}} if session is delayed else {}
        leave(session, planned(test=test, planted=session is delayed), record.launch(**told))
    leave(killed, planned(number=2), record.launch()[:-1], None)  # it was running
    next(damaged.glob("plan/*")).write_text("[]")
    (summarised / "summary.json").touch()
    store.write_session(work.store / f"{stored.name}{store.SUFFIX}", [])

    said = list(store_interrupted(work))
    assert [names[0] in said[0], said[1:]] == [
        True,
        [f"session {killed.name} was interrupted: its launches that ended are stored: 1"],
    ]
    kept = store.list_sessions(work.store)
    assert [path.stem for path in kept] == [killed.name, stored.name]
    assert set(store.read_session(kept[0])["mode"]) == {MODE}
    assert read_headlines(work.store).is_empty()
    assert (killed / LOOKED_AT).exists()  # each later command would read its files again
    assert list(store_interrupted(work)) == said[:1]  # until somebody mends it
