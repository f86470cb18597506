"""What a launch of ``mpicost`` tells of who was held up: each rank, and how far each node is from others."""

from dataclasses import dataclass

Interruption = tuple[float, float]  #: when it was over and how long it took, in seconds


@dataclass(frozen=True)
class RankLateness:
    """One rank: the kernel's counts over the launch, and a probe of 40 ms after its last case. In seconds."""

    voluntary: int  #: context switches
    involuntary: int
    faults: int  #: minor page faults
    quantum: float  #: the fastest piece of equal work, about a microsecond
    span: float  #: of the probe
    lost: float  #: by pieces that took more than twice the fastest
    longest: float
    waited: float | None = None  #: ready to run, and another ran; None if the kernel does not tell
    interrupts: int | None = None  #: of the CPUs that it may run on; None if the kernel does not tell
    #: The longest, since the probe began; none of a rank that lost little
    detours: tuple[Interruption, ...] = ()
    holds: tuple[Interruption, ...] = ()  #: the longest waits of a millisecond and more, since 1970 (UTC)


@dataclass(frozen=True)
class Lateness:
    """All ranks of a launch; simulated ones tell ``reach`` alone."""

    watched: float  #: seconds that the kernel's counts are of
    ranks: tuple[RankLateness, ...] = ()  #: in their order
    #: of each host, in the order of ``hosts``: median round trip with partners, of 8 bytes and of 32 KiB, in s
    reach: tuple[tuple[float, float], ...] = ()
