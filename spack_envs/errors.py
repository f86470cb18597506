"""The errors of this package, and how the reason of one is found in Spack's output, as one line."""

from __future__ import annotations

import re

ERROR = re.compile(r"^==> Error: (.*)")
TELLING = ("error: ", "*** ")  #: in what compilers, configure and make say
FOLD = re.compile(r"\n {11}")  #: where Spack folds a long line of its extract of a log
NUMBER = re.compile(r"^\s*(?:>>)?\s*\d+\s+")  #: of a line in Spack's extract of a log
ADDRESS = re.compile(r"\b(?:https?|ftp|file|ssh|git)://[^\s'\"]+[^\s'\":,.]")
UNFETCHED = "All fetchers failed"  #: Spack's words where no address has a source
UNSOLVED = "failed to concretize"  #: Spack's words where what is asked for has no solution
CAUSES = (re.compile(r"errored with: (.+)"), re.compile(r"^fatal: (?:unable to access '[^']*': )?(.+)"))
NUMBERED = re.compile(r"^\s+\d+\. (.+)")
LOG = re.compile(r"^\s+(/\S+/spack-build-out\.txt)\s*$")
FIX = "./plumbline setup --mirror DIR takes it from a mirror"


class SpackEnvironmentError(Exception):
    """An environment cannot be made on this machine. The text is one line: what, and the fix."""


class SourceError(SpackEnvironmentError):
    """The source of a program cannot be fetched: on this machine there is nothing to build it from."""


def extract_spack_error(output: str) -> SpackEnvironmentError:
    """Extract the reason of a failure in one line, with the fix where it is known; never empty.

    :param output: all that Spack wrote.
    :returns: a ``SourceError`` if a source cannot be fetched.
    """
    lines = FOLD.sub("", output).splitlines()
    place = next((number for number, line in enumerate(lines) if ERROR.match(line)), None)
    if place is None:
        said = [line.strip() for line in lines if line.strip()]
        return SpackEnvironmentError(said[-1] if said else "Spack ends without a word")
    if UNFETCHED in lines[place]:
        return SourceError(describe_fetch_failure(lines, place))
    return SpackEnvironmentError(describe_build_failure(lines, place))


def describe_build_failure(lines: list[str], place: int) -> str:
    """Describe why something cannot be solved or built, and where all of it is told.

    :param place: of the line with Spack's own reason
    """
    reason = ERROR.sub(r"\1", lines[place]).strip()
    after = lines[place + 1 :]
    if UNSOLVED in reason:
        numbered = (match[1] for line in after if (match := NUMBERED.match(line)))
        return f"cannot be solved: {next(numbered, reason)}"
    found = [NUMBER.sub("", line) for line in after if any(word in line for word in TELLING)]
    found += [line for line in after[:1] if line.startswith(" ")]
    detail = f": {found[0].strip()}" if found else ""
    log = next((f" (all of it: {match[1]})" for line in after if (match := LOG.match(line))), "")
    return f"{reason.rstrip(':')}{detail}{log}"


def describe_fetch_failure(lines: list[str], place: int) -> str:
    """Describe why a source cannot be fetched: the last address that was tried, its answer, and the fix."""
    after = "\n".join(lines[place + 1 :])
    addresses = ADDRESS.findall(after)
    causes = (cause for line in lines for each in CAUSES if (cause := each.search(line)))
    said = next((cause[1].strip() for cause in causes), "no answer")
    address = addresses[-1] if addresses else "its source"
    return f"cannot be fetched from {address} ({said}): {FIX}"
