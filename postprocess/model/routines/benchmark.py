"""One benchmark of OSU or IMB: what it measures, in which column and unit."""

from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.base.formats import MEGABYTES, RATIO, SECONDS, Unit, find_better_direction
from site_configs.programs.program import PROGRAMS

#: Smallest step of what OSU and IMB print, and of a ratio.
PRINTED: dict[str, float] = {SECONDS: 1e-8, MEGABYTES: 0.01, RATIO: 1e-6}


#: Variants beside those of mpicost. IMB's ``-off_cache`` takes another piece of a large buffer each time.
ROTATE = "rotate"
ROTATED = "rotated_megabytes"  #: key of the method of a start of IMB
LOOP = "loop"  #: nothing between the calls: the whole loop is timed
#: Timed calls of each size unless the user chooses another number
ITERATIONS: int = PROGRAMS["osu"].options["iterations"]
LEAST_ITERATIONS = 4  #: with fewer, OSU reads before its list of times when it computes the quarter
WINDOW_MESSAGES = 64  #: per window; each is sent before the last has arrived
WINDOW = "window_messages"  #: key of the method with that number, if the program gets it
WINDOW_SHARE = 5  #: iterations are divided by it if each is a window of 64 messages
WINDOW_ITERATIONS = "window_iterations"  #: key of the method with that number
QUANTILE = "judged_percentile"  #: key of the method with the judged quantile of the times
WINDOW_WARMUPS = "window_warmups"  #: key of the method with OSU's warm-up calls there
#: Threads per process: in the method, and in the notes of IMB-MT's tables. The printed sizes are for all
#: threads together.
THREADS = "threads"
CHECKED = "-check"  #: suffix of IMB's executables that were built to verify their data
WHOLE_START = "Start (s)"  #: column of a program that prints no time: the shell measures its whole start
RANKS = ("two", "even", "any")  #: process counts at which a benchmark makes sense


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of OSU or IMB, at every size of its launch.

    A routine that mpicost has too has the same name, so that equal operations can be compared.
    """

    name: str  #: name of the program or of its argument: ``osu_allreduce``, ``Allreduce``
    routine: str  #: Plumbline's name
    title: str  #: title of its table in the output
    column: str  #: header words of the column with the mean
    unit: Unit = SECONDS  #: ``s`` or ``MB/s``; the better direction follows from it
    sync: str = "barrier"  #: ``barrier`` between two calls, or ``loop``
    ranks: str = "any"
    sizes: tuple[int, ...] | None = None  #: None for those of the check; ``(0,)`` without a payload
    larger: tuple[int, ...] = ()  #: sizes that are measured in addition to those of the check
    least: int = 1  #: smallest size in bytes, that of one element; 0 if there may be no payload
    options: tuple[str, ...] = ()
    executable: str = ""  #: name of the executable, if the program has several
    mode: str = ""  #: mode of its tables, if it prints two: ``AGGREGATE`` of IMB-RMA
    #: Header words of the column that is judged instead of the mean, if the program prints quantiles of its
    #: trials; the mean is then the headline.
    steady: str = ""
    #: whether one iteration sends a window of messages, each before the last has arrived
    window: bool = False
    verifies: bool = False  #: whether the program can verify received data
    from_processes: int = 2  #: smallest number of processes that the program runs with
    from_nodes: int = 1  #: smallest number of nodes at which it makes sense

    def __post_init__(self) -> None:
        find_better_direction(self.unit)
        if self.ranks not in RANKS:
            raise ValueError(f"{self.name}: ranks {self.ranks!r} is none of {', '.join(RANKS)}")

    @property
    def peer(self) -> int:
        """The partner of rank 0; 1 for the ping-pong of two ranks, as in mpicost."""
        return 1 if self.routine == "pingpong" else 0

    @property
    def judged(self) -> str:
        """The header words of the judged column."""
        return self.steady or self.column

    @property
    def datatype(self) -> str:
        """The data type that OSU is made to send, as it prints it; empty if none."""
        pairs = dict(zip(self.options, self.options[1:], strict=False))
        return pairs.get("-T", "").upper()

    def is_measured_at(self, processes: int, per_node: int) -> bool:
        """Return whether the benchmark is measured with these numbers of processes in total and per node."""
        if self.ranks == "two":
            return processes == 2
        nodes = -(-processes // per_node)
        if processes < self.from_processes or nodes < self.from_nodes:
            return False
        return self.ranks == "any" or processes % 2 == 0

    def chosen_sizes(self, sizes: Sequence[int]) -> list[int]:
        """Return those of the sizes that it can be measured at, or its own sizes if it has any.

        Sizes are multiples of an element: asked for 6 bytes, OSU would send one float and print 6.
        """
        if self.sizes is not None:
            return list(self.sizes)
        element = max(self.least, 1)
        return [size for size in sizes if size >= self.least and size % element == 0]
