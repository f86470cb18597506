"""Work that several threads begin together."""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

Result = TypeVar("Result")


def at_once(work: Callable[[], Result], number: int = 4) -> list[Result]:
    """What each thread returns. Raises what any of them raised."""
    start = threading.Barrier(number)

    def run(_: int) -> Result:
        start.wait()
        return work()

    with ThreadPoolExecutor(number) as pool:
        return list(pool.map(run, range(number)))
