"""A library in the place of the MPI's own one is told from one that is loaded in front of it."""

from __future__ import annotations

import pytest

from postprocess.model.interposed import INTERPOSED
from postprocess.references.comparability import InterposedLibraries


@pytest.mark.parametrize(
    ("library", "told", "fix"),
    [
        ("libmpi.so.12 (12ab)", "stands in the place of the MPI's own library", "own file back"),
        ("libmpi.so.40 (12ab)", "stands in the place of the MPI's own library", "own file back"),
        ("libmpitrace.so (12ab)", "is loaded in front of the MPI", "take it out of LD_PRELOAD"),
    ],
)
def test_a_replaced_library_is_no_preloaded_one(library: str, told: str, fix: str):
    difference = InterposedLibraries(INTERPOSED, library, "")
    assert told in str(difference) and fix in difference.fix
