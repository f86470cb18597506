"""One benchmark of OSU or IMB: what it measures, in which column and unit."""

from collections.abc import Sequence
from dataclasses import dataclass

from postprocess.base.formats import MEGABYTES, RATIO, SECONDS, Unit, find_better_direction
from site_configs.programs.program import PROGRAMS

#: Smallest step of what OSU and IMB print, and of a ratio.
PRINTED: dict[str, float] = {SECONDS: 1e-8, MEGABYTES: 0.01, RATIO: 1e-6}


#: Words beside those of mpicost. IMB's ``-off_cache`` takes another piece of a large buffer each time.
ROTATE = "rotate"
ROTATED = "rotated_megabytes"  #: in the method of a start of IMB
LOOP = "loop"  #: nothing between the calls: the whole loop is timed
#: Timed calls of each size, unless the user says otherwise
ITERATIONS: int = PROGRAMS["osu"].options["iterations"]
LEAST_ITERATIONS = 4  #: OSU tells no quarter of fewer: it reads before its list of times
WINDOW_MESSAGES = 64  #: of a window, each sent before the last has arrived
WINDOW = "window_messages"  #: the method's key of that number, where the program is told
WINDOW_SHARE = 5  #: so many times fewer, where an iteration is a window of 64 messages
WINDOW_ITERATIONS = "window_iterations"  #: the method's key of that number
QUANTILE = "judged_percentile"  #: the method's key of the quantile of times that is judged
WINDOW_WARMUPS = "window_warmups"  #: the method's key of OSU's warm-up calls there
#: Of a process, where a benchmark has several: in the method, and in the notes of IMB-MT's tables. The sizes
#: that it prints are of all threads together.
THREADS = "threads"
CHECKED = "-check"  #: behind the names of IMB's executables that were built to verify their data
WHOLE_START = "Start (s)"  #: column of a program that prints no time: the shell tells that of its whole start
RANKS = ("two", "even", "any")  #: process counts at which a benchmark means something


@dataclass(frozen=True)
class Benchmark:
    """One benchmark of OSU or IMB, at every size of its launch.

    A routine that mpicost has too has mpicost's name, so that what is the same operation compares.
    """

    name: str  #: as the program is called, or is told: ``osu_allreduce``, ``Allreduce``
    routine: str  #: ours
    title: str  #: of its table in the output
    column: str  #: header words of the column with the mean
    unit: Unit = SECONDS  #: ``s`` or ``MB/s``; the better direction follows from it
    sync: str = "barrier"  #: ``barrier`` between two calls, or ``loop``
    ranks: str = "any"
    sizes: tuple[int, ...] | None = None  #: None for those of the check; ``(0,)`` for no payload
    larger: tuple[int, ...] = ()  #: sizes that are measured beside those of the check
    least: int = 1  #: smallest size in bytes, of one element; 0 if there may be no payload
    options: tuple[str, ...] = ()
    executable: str = ""  #: that has it, where a program has several
    mode: str = ""  #: of its tables, where it prints two: ``AGGREGATE`` of IMB-RMA
    #: Header words of the column that is judged in the place of the mean, where the program prints quantiles of
    #: its trials; the mean is the headline then.
    steady: str = ""
    #: whether one iteration sends a window of messages, each before the last has arrived
    window: bool = False
    verifies: bool = False  #: whether the program can verify the data that it receives
    from_processes: int = 2  #: the least with which the program runs
    from_nodes: int = 1  #: the least on which it means something

    def __post_init__(self) -> None:
        find_better_direction(self.unit)
        if self.ranks not in RANKS:
            raise ValueError(f"{self.name}: ranks {self.ranks!r} is none of {', '.join(RANKS)}")

    @property
    def peer(self) -> int:
        """The partner of rank 0, as mpicost tells it of the ping-pong of two ranks."""
        return 1 if self.routine == "pingpong" else 0

    @property
    def judged(self) -> str:
        """Return the header words of the column that is judged."""
        return self.steady or self.column

    @property
    def datatype(self) -> str:
        """The type that OSU is told to send, as it prints it; empty if none."""
        told = dict(zip(self.options, self.options[1:], strict=False))
        return told.get("-T", "").upper()

    def is_measured_at(self, processes: int, per_node: int) -> bool:
        """Return whether the benchmark is measured with so many processes, so many of them on a node."""
        if self.ranks == "two":
            return processes == 2
        nodes = -(-processes // per_node)
        if processes < self.from_processes or nodes < self.from_nodes:
            return False
        return self.ranks == "any" or processes % 2 == 0

    def chosen_sizes(self, sizes: Sequence[int]) -> list[int]:
        """Return those of these sizes that it can be measured at; its own if it has any.

        Sizes are of whole elements: of 6 bytes OSU sends one float, and says that it were 6.
        """
        if self.sizes is not None:
            return list(self.sizes)
        element = max(self.least, 1)
        return [size for size in sizes if size >= self.least and size % element == 0]
