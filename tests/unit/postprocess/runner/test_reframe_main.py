"""What ReFrame's own process does otherwise than ReFrame."""

import subprocess
import sys
from pathlib import Path

from tests.support.paths import ROOT


def run(script: str, *words: str, **environment: str) -> str:
    """What a script of Python prints that ends well."""
    environment |= {"PYTHONPATH": str(ROOT), "PATH": "/usr/bin:/bin"}
    command = [sys.executable, "-c", script, *words]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


SHOW = """
import os, sys
from reframe.utility import osext
from postprocess.runner.reframe_main import disable_expansion
disable_expansion()
print(osext.expandvars(sys.argv[1]), os.path.expandvars(sys.argv[1]), osext.expandvars("${HOME}/.reframe"))
"""


def test_reframe_takes_a_path_as_it_is(tmp_path: Path) -> None:
    """``PLUMBLINE_HOME='/tmp/x$(touch F)'`` ran the command. Its own defaults are in the home directory."""
    path = f"/x$(touch {tmp_path}/run)`touch {tmp_path}/run`$HOME"
    assert run(SHOW, path, HOME="/home/me") == f"{path} {path} /home/me/.reframe\n"
    assert not (tmp_path / "run").exists()


PAUSES = """
import subprocess, time
from reframe.frontend.executors import policies
from postprocess.runner.reframe_main import end_pauses_at_exits
end_pauses_at_exits()

def paused(seconds):
    begin = time.monotonic()
    policies.time.sleep(seconds)
    return time.monotonic() - begin

subprocess.run(["true"])  # as a look at a queue
print(paused(0.5) >= 0.5)
job = subprocess.Popen(["sleep", "0.3"])
print(paused(50) < 25, job.wait() == 0, paused(0.5) >= 0.5)
"""


def test_a_pause_ends_when_a_job_does_and_not_by_a_look_at_a_queue() -> None:
    assert run(PAUSES) == "True\nTrue True True\n"


VARIABLES = """
import sys
import reframe as rfm
from reframe.core.builtins import variable
from postprocess.runner.reframe_main import copy_variables_quickly
if sys.argv[1:]:
    copy_variables_quickly()

class Above(rfm.RegressionTestPlugin):
    told = variable(list, value=["a"])
    also = variable(alias=told)
    open = variable(int)

class Below(Above):
    also = ["b"]
    open = 3

class Beside(Above):
    told += ["c"]

for each in (Above, Below, Beside):
    print(each.told, each.also, each._rfm_var_space["open"].is_defined())
try:
    Beside.open = "x"
except TypeError as error:
    print(error)
"""


def test_a_class_has_variables_of_its_own(tmp_path: Path) -> None:
    """As with ReFrame's own copies."""
    script = tmp_path / "classes.py"  # ReFrame asks for the source of a class
    script.write_text(VARIABLES)
    start = f"import runpy; runpy.run_path({str(script)!r}, run_name='__main__')"
    usual, quick = run(start), run(start, "quickly")
    assert usual == quick
    assert quick.startswith("['a'] ['a'] False\n['b'] ['b'] True\n['a', 'c'] ['a', 'c'] False\n")
