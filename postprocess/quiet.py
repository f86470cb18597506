"""Whether others use this machine: what is measured beside them is theirs, and no yardstick."""

from __future__ import annotations

import os
import time

from postprocess.progress import Progress
from site_configs.machine import busy_share, cpu_times

LOOK_SECONDS = 0.5  #: for which the machine is watched
WAIT_SECONDS = 60  #: for which a calibration waits that others leave it; a build has its stragglers
PAUSE_SECONDS = 2.0  #: between two looks
BUSY_SHARE = 0.15  #: of all CPUs; a quiet machine's daemons need far less
#: Set to 1, calibrations do not wait for a quiet machine, as with ``--beside-others``: for tests.
BESIDE_OTHERS = "PLUMBLINE_BESIDE_OTHERS"


def share_of_others() -> float:
    """Share of this machine, from 0 to 1, that is used now, while nothing of ours runs."""
    before = cpu_times()
    time.sleep(LOOK_SECONDS)
    return busy_share(before, cpu_times())


def note_other_work(progress: Progress) -> None:
    """Say so if others use this machine now."""
    share = share_of_others()
    if share > BUSY_SHARE:
        progress.note(
            f"other work keeps this machine {share:.0%} busy: do not trust these times, and calibrate "
            "again when it is quiet (./plumbline calibrate)"
        )


def kept_busy(progress: Progress) -> float:
    """Wait until others leave the machine; the share that they use after a minute, 0 if they did leave.

    Who wants to measure beside them says so by ``PLUMBLINE_BESIDE_OTHERS=1``, and waits for nothing.
    """
    if os.environ.get(BESIDE_OTHERS) == "1":
        return 0.0
    share = share_of_others()
    if share <= BUSY_SHARE:
        return 0.0
    deadline = time.monotonic() + WAIT_SECONDS
    with progress.phase("waiting"):
        while share > BUSY_SHARE and time.monotonic() < deadline:
            progress.now(f"other work keeps this machine {share:.0%} busy: waiting for its end")
            time.sleep(PAUSE_SECONDS)
            share = share_of_others()
    return share if share > BUSY_SHARE else 0.0
