"""The record of a program is all that goes by program, beside its parser and its check."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

from postprocess.parsers.osu_imb_launch import find_parser
from site_configs.programs.program import PROGRAMS, find_product, find_programs, find_usual_values

ROOT = Path(__file__).parents[4]

#: Adds a record by its module alone, and asks who must know the program.
ONE_RECORD_MORE = """
import sys, types
from pathlib import Path

path = Path("site_configs/programs/program.py")
record = '''Program("strange", "strange-mpi", "bin", sample="strange_latency", example="/sw/strange/bin",
    launches=7, caches=("warm", "odd"), options={"cache": "warm", "iterations": 9}),
        Program(
            "mpicost",'''
source = path.read_text().replace('Program(\\n            "mpicost",', record, 1)
module = types.ModuleType("site_configs.programs.program")
import site_configs.programs
sys.modules[module.__name__] = module
exec(compile(source, str(path), "exec"), module.__dict__)

from postprocess.cli.option_types import parse_programs
from postprocess.extensions.procurement.rules import rules
from postprocess.model.options import CACHE_STATE, ITERATION_COUNT
from site_configs.annotations import find_fault
from site_configs.programs.installed import Programs
from spack_envs.layout import BUILT

assert parse_programs("strange") == ["strange"]
assert CACHE_STATE.programs_with("odd") == ("strange",)
assert ITERATION_COUNT.usual["strange"] == 9
assert not find_fault({"strange": "/opt/strange"}, Programs)
assert "strange" in rules.Program.__args__ and "strange" in rules.Iterated.__args__
assert "strange-mpi" in BUILT
"""


def test_a_further_program_is_one_record():
    ran = subprocess.run(
        [sys.executable, "-c", ONE_RECORD_MORE], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert ran.returncode == 0, ran.stderr


@pytest.mark.parametrize("name", [name for name in PROGRAMS if not PROGRAMS[name].own])
def test_each_program_of_others_has_its_parser_and_its_check(name):
    assert find_parser(name).__name__ == f"parse_{name}"
    assert (ROOT / "reframe_checks" / f"{name}.py").is_file()


def test_what_is_built_to_have_a_program():
    assert (find_product("kernels"), find_product("osu")) == ("mpicost", "osu")


def test_options_by_program():
    assert find_programs("seconds_per_layout") == ("mpicost", "kernels", "gpu")
    assert find_usual_values("seconds_per_layout") == {}
    assert find_usual_values("trials") == {"mpicost": 51, "kernels": 6, "gpu": 51}


#: Files that mean OSU or IMB and no other program.
OF_ONE_PROGRAM = {
    "reframe_checks/osu.py", "reframe_checks/imb.py",  # their checks
    "reframe_checks/agreement.py", "postprocess/extensions/agreement/compare.py",  # operations alike
    "site_configs/local.py",  # the IMB that a wheel of Intel MPI brings
    "site_configs/programs/installed.py",  # an example for people
    "postprocess/model/routines/benchmark.py",  # the default of --iterations
}  # fmt: skip


def test_no_other_code_knows_a_program_by_name():
    folders = ("postprocess", "site_configs", "reframe_checks", "spack_envs")
    files = [path for folder in folders for path in sorted((ROOT / folder).rglob("*.py"))]
    found = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in files
        if str(path.relative_to(ROOT)) not in OF_ONE_PROGRAM | {"site_configs/programs/program.py"}
        if "spack_repo" not in path.parts
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and node.value in ("osu", "imb")
    ]
    assert found == []
