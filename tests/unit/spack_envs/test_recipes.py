"""Our recipes of Spack, tried without one: what they import of it is in its place."""

import runpy
import sys
from collections.abc import Callable
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest

from spack_envs.spack_repo.plumbline.file_access import FILE_ACCESS
from tests.support.fake_mpis import script
from tests.support.paths import ROOT

RECIPES = ROOT / "spack_envs" / "spack_repo" / "plumbline" / "packages"


@contextmanager
def stay(_: Any):
    yield


@pytest.fixture
def load(monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], type]:
    """Load the class of a recipe; the recipe of Spack below it is empty."""

    def module(name: str, **content: Any) -> None:
        made = ModuleType(name)
        vars(made).update(content)
        monkeypatch.setitem(sys.modules, name, made)

    def same(function: Any) -> Any:
        return function

    def load_recipe(package: str, name: str) -> type:
        nothing = dict.fromkeys(("copy", "filter_file", "install", "mkdir", "version"), lambda *_, **__: None)
        module("spack")
        module("spack.package", InstallError=Exception, run_after=lambda _: same, working_dir=stay, **nothing)
        for parent in (
            "spack_repo",
            "spack_repo.builtin",
            "spack_repo.builtin.packages",
            "spack_repo.plumbline",
        ):
            module(parent)
        module("spack_repo.plumbline.build_record", telling=None, write_build_record=None)
        module("spack_repo.plumbline.file_access", FILE_ACCESS=FILE_ACCESS)
        recipe = SimpleNamespace(**{name: type(name, (), {})})
        module(f"spack_repo.builtin.packages.{package}", package=recipe)
        return runpy.run_path(str(RECIPES / package / "package.py"))[name]

    return load_recipe


SUITES = ("mpi1", "nbc", "rma", "p2p", "ext", "io", "mt")


@pytest.fixture
def imb(load: Callable[[str, str], type], tmp_path: Path) -> Any:
    """The recipe of IMB with all of its suites, on an MPI whose wrapper compiles everything."""
    recipe = load("intel_mpi_benchmarks", "IntelMpiBenchmarks")()

    class Spec(dict):
        """Stand in for a spec: its variants, and its dependencies by name."""

        def __init__(self, **dependencies: Any) -> None:
            super().__init__(dependencies)
            self.variants = {name: SimpleNamespace(value=True) for name in SUITES}

    recipe.spec = Spec(mpi=SimpleNamespace(mpicc=script(tmp_path / "mpicc", "true")))
    recipe.stage = SimpleNamespace(source_path=tmp_path, path=tmp_path)
    return recipe


def test_imb_for_an_mpi_without_mpi_io_lacks_the_executable_for_files_only(imb: Any, tmp_path: Path):
    script(tmp_path / "mpicc", '! grep -q MPI_File_open "$1"')
    assert imb.build_targets == [f"IMB-{name.upper()}" for name in SUITES if name != "io"]


def test_the_imb_with_threads_and_no_other_is_compiled_with_them(imb: Any):
    """Without the option it compiles, and each process runs a single thread."""
    called: list[tuple[str, ...]] = []
    imb.module = SimpleNamespace(make=lambda *words: called.append(words))
    imb.build(imb.spec, None)
    by_target = [(name, words) for name in SUITES for words in called if f"TARGET={name.upper()}" in words]
    assert {name for name, _ in by_target} == {*SUITES}
    flags = [(name, " ".join(word.partition("=")[2] for word in words).split()) for name, words in by_target]
    assert {name for name, words in flags if "-fopenmp" in words} == {"mt"}
