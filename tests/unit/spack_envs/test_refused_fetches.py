"""A fetch that failed is not tried again for a day, unless somebody asks for it."""

from __future__ import annotations

from pathlib import Path

import pytest

from spack_envs import refused_fetches as module
from spack_envs.fetch import FetchError
from spack_envs.refused_fetches import RefusedFetches


def test_what_was_refused_is_remembered_for_a_day(tmp_path: Path, monkeypatch):
    now, tries = [1e9], []
    monkeypatch.setattr(module.time, "time", lambda: now[0])

    def attempt() -> None:
        tries.append(now[0])
        raise FetchError("no network")

    def fetch(again: bool = False) -> None:
        with pytest.raises(FetchError, match="no network"):
            RefusedFetches(tmp_path / "refused.json", again).fetch("spack v1", attempt)

    fetch()
    fetch()
    assert len(tries) == 1
    fetch(again=True)
    now[0] += module.REMEMBERED
    fetch()
    assert len(tries) == 3
    (tmp_path / "refused.json").write_text("[")
    fetch()
    assert len(tries) == 4
