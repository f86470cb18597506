"""A cluster to play with needs nothing but the virtual environment of a user, as the tutorial says."""

import subprocess
import sys

from tests.support.paths import ROOT

#: What only the environment for tests has.
LACKING = ("pytest", "hypothesis", "_pytest")


def test_a_cluster_by_hand_needs_no_package_of_the_tests():
    code = (
        f"import runpy, sys; sys.path.insert(0, {str(ROOT)!r}); "
        f"sys.modules.update(dict.fromkeys({LACKING!r})); sys.argv = ['slurm', '--help']; "
        "runpy.run_module('tests.support.slurm', run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-I", "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    assert "up" in done.stdout
