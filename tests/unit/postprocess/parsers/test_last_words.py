"""What is quoted of a job that died: the line that says why, and not what surrounds it."""

import pytest

from postprocess.parsers.last_words import find_last_words
from tests.support.faults import Declared, each_of, plants

DASHES = "-" * 74
EQUALS = "=" * 83
SIGNAL = f"""[n1:24759] *** Process received signal ***
[n1:24759] Signal: Segmentation fault (11)
[n1:24759] [ 0] /lib/x86_64-linux-gnu/libc.so.6(+0x3c050)
[n1:24759] *** End of error message ***
{DASHES}
prterun noticed that process rank 0 with PID 24759 on node n1 exited on
signal 11 (Segmentation fault).
{DASHES}
"""
NO_SLOTS = f"""{DASHES}
There are not enough slots available in the system to satisfy the 64
slots that were requested by the application:

  /home/u/mpicost

Either request fewer procs for your application, or make more slots
available for use.
{DASHES}
"""
OWN_WORDS = f"""mpicost: cannot open file
{DASHES}
Primary job  terminated normally, but 1 process returned
a non-zero exit code. Per user-direction, the job has been aborted.
{DASHES}
{DASHES}
mpirun detected that one or more processes exited with non-zero status, thus causing
the job to be terminated. The first process to do so was:
{DASHES}
[n1:1] 3 more processes have sent help message help-mpi-api.txt / mpi-abort
[n1:1] Set MCA parameter "orte_base_help_aggregate" to 0 to see all help / error messages
"""
HYDRA = f"""{EQUALS}
=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES
=   EXIT CODE: 9
=   YOU CAN IGNORE THE BELOW CLEANUP MESSAGES
{EQUALS}
YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)
This typically refers to a problem with your application.
Please see the FAQ page for debugging suggestions
"""
HANDLER = """[n1:1] *** An error occurred in MPI_Init
[n1:1] *** reported by process [123,0]
[n1:1] *** MPI_ERRORS_ARE_FATAL (processes in this communicator will now abort,
"""
STEP = """srun: error: n1: task 1: Segmentation fault (core dumped)
srun: Terminating StepId=4.0
slurmstepd: error: *** STEP 4.0 ON n1 CANCELLED AT 2026-11-25T02:11:09 ***
srun: error: n1: tasks 0,2-3: Terminated
"""
OOM = """slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0.
mpicost: a later line
srun: error: n1: tasks 0-15: Killed
"""
BAD_ALLOC = "terminate called after throwing 'std::bad_alloc'\nmpicost: aborted\n"


ENDINGS = {
    SIGNAL: plants("programs", "Open MPI on a signal, between dashes", "the end of a job", "crashed", 1,
        "prterun noticed that process rank 0 with PID 24759 on node n1 exited on signal 11"),
    NO_SLOTS: plants("programs", "Open MPI with advice in its message", "the end of a job", "crashed", 1,
        "There are not enough slots available in the system to satisfy the 64 slots"),
    OWN_WORDS: plants("programs", "words of a program, and what follows", "the end of a job", "crashed", 1,
        "mpicost: cannot open file"),
    HYDRA: plants("programs", "Hydra on a signal", "the end of a job", "crashed", 1,
        "YOUR APPLICATION TERMINATED WITH THE EXIT STRING: Killed (signal 9)"),
    HANDLER: plants("programs", "Open MPI's error handler", "the end of a job", "crashed", 1,
        "[n1:1] *** An error occurred in MPI_Init"),
    STEP: plants("programs", "Slurm on a task and then on the others", "the end of a job", "crashed", 1,
        "srun: error: n1: task 1: Segmentation fault (core dumped)"),
    OOM: plants("programs", "a lack of memory, and later lines", "the end of a job", "crashed", 1,
        "slurmstepd: error: Detected 1 oom_kill event"),
    BAD_ALLOC: plants("programs", "an allocation of C++ that failed", "the end of a job", "crashed", 1,
        "terminate called after throwing 'std::bad_alloc'"),
}  # fmt: skip


@pytest.mark.parametrize("text", each_of(ENDINGS))
def test_the_line_that_says_why_is_quoted(text: str, declared: Declared):
    lines = [line for line in text.split("\n") if line.strip()]
    declared.check_case("crashed", find_last_words(lines))


@pytest.mark.parametrize("lines", [[], [DASHES], [DASHES, DASHES]])
def test_rules_alone_say_nothing(lines):
    assert find_last_words(lines) == ""


def test_a_long_quotation_ends_behind_a_word():
    assert find_last_words(["a reason " * 40]) == f"{'a reason ' * 22}a ..."
    assert find_last_words(["x" * 300]) == f"{'x' * 200} ..."
    assert find_last_words(["x" * 200]) == "x" * 200
