"""Several starts of mpicost in one job, one after the other, each ended at its limit."""

from collections.abc import Iterator, Mapping

from postprocess.base.sanitize import quote_word
from postprocess.model.plan import PlannedLaunch
from reframe_checks.common.base import LaunchCheck


def launcher_words(check: LaunchCheck) -> str:
    check.job.num_tasks = check.num_tasks
    check.job.num_tasks_per_node = check.num_tasks_per_node
    return check.job.launcher.run_command(check.job)


def lines_of_mpicost(
    check: LaunchCheck, start: PlannedLaunch, words: str, variables: Mapping[str, str]
) -> Iterator[str]:
    """Yield the commands of one start; mpicost needs no witness.

    :param variables: of this start alone; the launcher's own words may name them
    """
    program = str(getattr(check.mpicost, "program", "mpicost"))
    run = ["timeout", "--kill-after=10", f"{start.time_limit:.0f}", words]
    run += map(quote_word, [program, *start.options, f"--token={start.token}"])
    exports = "".join(f"export {name}={quote_word(text)}; " for name, text in variables.items())
    line = f"{' '.join(run)} > /dev/null"
    yield check.line_of_moment(start)
    yield f"({exports}{line})" if exports else line
    yield f"echo $? > {quote_word(str(start.ending(check.session)))}"
    yield check.line_of_moment(start)
