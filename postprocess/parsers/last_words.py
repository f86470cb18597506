"""Find the line of a job's standard error that says why it ended.

Open MPI frames its messages with dashes, Hydra with equals signs. Launchers and batch systems then report what
they do with the other processes. The patterns match the texts of versions in use.
"""

import re
from collections.abc import Sequence

from postprocess.base.sanitize import sanitize_line

MOST = 200  #: characters that are quoted
RULE = re.compile(r"[\s=*_#~+.-]{4,}")  #: a line of dashes or similar characters only
#: Messages about a lack of memory from kernels, batch systems, MPIs and languages. The first such line counts.
MEMORY = re.compile(
    r"oom[_-]?kill|\boom\b|out[ -]of[ -]memory|cannot allocate memory|unable to allocate .*memory"
    r"|not enough (free )?memory|insufficient memory|(job|step|task|cgroup|virtual) memory limit"
    r"|mem(ory)? .*exceed|exceeded .*memory|std::bad_alloc|TERM_MEMLIMIT|MemoryError",
    re.I,
)
#: Advice, and references to other messages.
ADVICE = re.compile(
    r"\bFAQ\b|Set MCA parameter|more process(es)? (has|have) sent help message|https?://"
    r"|This typically refers to a problem with your application|for debugging suggestions"
    r"|^\W*(Either request fewer|Alternatively,|Please (see|check|consult|refer|contact|report)"
    r"|For more (details|information)|You (can|may|should) |Try |Hint:|NOTE: |IMPORTANT: |See |Use )"
    r"|YOU CAN IGNORE THE BELOW"
    r"|\*\*\* End of error message|=+ backtrace =+|^\W*(\[[^]]*\]\s*)*\[ ?\d+\] ",
    re.I,
)
#: How a message of Open MPI's error handler begins; its other lines begin likewise.
HANDLER = re.compile(r"^\[[^]]+\] \*\*\*")
#: What a launcher or a batch system reports after a process has ended.
AFTERWARDS = re.compile(
    r"^srun: (error: [^:]+: tasks? |Terminating|launch/|Job step aborted|Force Terminated|forcing job)"
    r"|^slurmstepd: error: (?!.*DUE TO)\*\*\*|^\[(mpiexec|proxy)\b|^Primary job +terminated normally"
    r"|detected that one or more processes exited|has exited due to process rank"
    r"|^=+ +(BAD TERMINATION|PID |RANK |KILLED BY|EXIT CODE|EXIT STATUS|CLEANING UP)"
    r"|^(mpirun|mpiexec|prterun): (clean termination|killing|forwarding|abort is already)",
    re.I,
)


def find_last_words(lines: Sequence[str]) -> str:
    """Find the line that says why a job ended, fit to be shown; empty if there is none.

    A lack of memory comes first. Next is the beginning of the last message that is not a rule, advice or an
    aftermath; then the first aftermath.
    """
    if words := find_memory_words(lines):
        return words
    paragraphs = split_messages(lines)
    telling = [paragraph for paragraph in paragraphs if not AFTERWARDS.search(paragraph)]
    return shorten(telling[-1] if telling else next(iter(paragraphs), ""))


#: How a compiler, a linker, CMake and make report an error; the first one explains the others.
BUILD_ERROR = re.compile(
    r"(?<!\w)(fatal )?error( [A-Z]*\d+)?: |^CMake Error|: undefined reference to |: (command )?not found$"
)


def find_build_error(lines: Sequence[str]) -> str:
    """Find the first error of a compiler, a linker or CMake, fit to be shown; empty if there is none.

    The line below ``CMake Error at FILE:LINE (COMMAND):`` says what is wrong, and is included.
    """
    for number, line in enumerate(lines):
        if BUILD_ERROR.search(line):
            more = lines[number + 1 : number + 2] if line.rstrip().endswith(":") else []
            return shorten(" ".join([line.strip(), *(line_behind.strip() for line_behind in more)]))
    return ""


def find_memory_words(lines: Sequence[str]) -> str:
    """Find the first line about a lack of memory; empty if there is none."""
    return shorten(next(filter(MEMORY.search, lines), ""))


def split_messages(lines: Sequence[str]) -> list[str]:
    """Split lines into messages, and return the beginning of each.

    Two rules frame one message, of which the first paragraph counts. Each line outside is a message of its own.
    """
    messages: list[str] = []
    rules = [number for number, line in enumerate(lines) if RULE.fullmatch(line)]
    frames = dict(pair_rules(lines, rules))
    number = 0
    while number < len(lines):
        end = frames.get(number)
        inside = lines[number + 1 : end] if end else [lines[number]]
        kept = [] if end is None and is_continued(lines, number) else take_paragraph(inside)
        messages += [" ".join(kept)] if kept else []
        number = end + 1 if end else number + 1
    return messages


def is_continued(lines: Sequence[str], number: int) -> bool:
    """Return whether a line continues the error handler's message of the line before."""
    before = HANDLER.match(lines[number - 1]) if number else None
    return before is not None and lines[number].startswith(before[0])


def pair_rules(lines: Sequence[str], rules: Sequence[int]) -> list[tuple[int, int]]:
    """Pair the rules that frame a message: equal ones with something between them."""
    pairs = []
    start = None
    for rule in rules:
        if start is not None and lines[rule].strip() == lines[start].strip() and rule > start + 1:
            pairs.append((start, rule))
            start = None
        else:
            start = rule
    return pairs


def take_paragraph(lines: Sequence[str]) -> list[str]:
    """Take the lines of a message up to the end of its first sentence, without rules and advice."""
    taken: list[str] = []
    for line in lines:
        if RULE.fullmatch(line) or not line.strip() or ADVICE.search(line):
            if taken:
                break
            continue
        taken.append(line.strip())
        if line.rstrip().endswith((".", ":", "!")) or AFTERWARDS.search(line):
            break
    return taken


def shorten(words: str) -> str:
    """Shorten a quotation, between words, and escape its characters."""
    text = sanitize_line(words.strip())
    return text if len(text) <= MOST else f"{text[:MOST].rpartition(' ')[0] or text[:MOST]} ..."
