"""Standard output that is closed, full or without a reader ends no command."""

import subprocess
import sys

import pytest

from tests.support.paths import ROOT

SCRIPT = """
import sys
from postprocess.base.standard_streams import finish_output, secure_streams
output = secure_streams()
for number in range(20000):
    print(number)
sys.stderr.write("kept\\n")
sys.exit(finish_output(output, STATUS))
"""


def end(redirection: str, status: int = 0) -> tuple[int, str]:
    """Exit status of the script and what it says on standard error."""
    command = f'"$0" -c "$1" {redirection}'
    script = SCRIPT.replace("STATUS", str(status))
    words = ["bash", "-o", "pipefail", "-c", command, sys.executable, script]
    done = subprocess.run(words, cwd=ROOT, check=False, stderr=subprocess.PIPE, text=True)
    return done.returncode, done.stderr


@pytest.mark.parametrize("status", [0, 1])
def test_a_reader_that_goes_away_changes_no_exit_status(status: int) -> None:
    assert end("| head -1 >/dev/null", status) == (status, "kept\n")


@pytest.mark.parametrize(("status", "ends_with"), [(0, 2), (1, 1)])
def test_a_full_disk_behind_standard_output_is_told_at_the_end(status: int, ends_with: int) -> None:
    reason = "plumbline: standard output: No space left on device; what was printed is not whole\n"
    assert end(">/dev/full", status) == (ends_with, "kept\n" + reason)
