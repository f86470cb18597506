"""The cluster as tests take it: a module that wants one writes a fixture of its own scope around this."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from .availability import Unavailable
from .cluster import Cluster


@contextmanager
def cluster_or_skip(directory: Path, **how: Any) -> Iterator[Cluster]:
    """A cluster for as long as the block lasts. Where there can be none the test is skipped, with the reason.

    :param how: the cluster's own parameters.
    """
    try:
        cluster = Cluster(directory, **how)
        cluster.bring_up()
    except Unavailable as reason:
        import pytest  # which a person who starts a cluster by hand may not have

        pytest.skip(str(reason))
    try:
        yield cluster
    finally:
        cluster.stop()
