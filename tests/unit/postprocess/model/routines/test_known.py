"""Every routine of every check may be typed; a word that no check has is refused before ReFrame starts."""

import pytest

from postprocess.main import main
from postprocess.model.routines.known import may_be_routine
from postprocess.model.routines.mpicost import KERNEL_ROUTINES, ROUTINES
from postprocess.model.routines.requested import REQUESTED
from postprocess.runner.reframe import ReframeDriver
from site_configs.mpi import exchange
from tests.support.factories.benchmark_table import checks
from tests.support.faults import Declared, plants


def list_routines() -> list[str]:
    names = {routine.name for routine in (*ROUTINES, *KERNEL_ROUTINES)} | REQUESTED
    names |= {line.routine for check in checks().values() for line in check.table}
    names |= {f"{routine}.{language}" for routine in exchange.ROUTINES for language in ("rust", "mpi4py")}
    return sorted({*names, "bcast.DD"})


@pytest.mark.parametrize("name", list_routines())
def test_no_routine_of_a_check_is_refused(name: str):
    assert may_be_routine(name)


@pytest.mark.parametrize("word", ["nothing", "bcats", "bcast:8", "reduce-scatter", "called"])
def test_a_word_of_prose_is_no_routine(word: str):
    assert not may_be_routine(word)


@plants(
    "use",
    "a routine that no check has",
    "`--routine`",
    "",
    2,
    "is not a routine of any check; did you mean bcast?",
)
def test_a_mistyped_routine_is_refused_before_reframe_starts(tmp_path, capsys, monkeypatch, declared: Declared):
    def start(*_):
        raise AssertionError("ReFrame was started")

    monkeypatch.setattr(ReframeDriver, "start", start)
    status = main(str(tmp_path), str(tmp_path), ["nightly", "--site", "simulated", "--routine", "bcats"])
    declared.check((), status, [capsys.readouterr().err])
    assert not list(tmp_path.iterdir())
