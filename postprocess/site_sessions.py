"""Sessions in which a site is only looked at. One that fails leaves its log, and no session."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator

from postprocess.reframe_driver import Reframe, RefusedError

LOG = "site.log"  #: in the work directory: what ReFrame printed when it last refused a site


@contextlib.contextmanager
def removed_on_failure(reframe: Reframe) -> Iterator[None]:
    """Remove a session in which nothing was measured, if this fails; a complaint names where its log is now."""
    try:
        yield
    except BaseException as error:
        log = reframe.work / LOG
        with contextlib.suppress(FileNotFoundError):
            reframe.log.replace(log)
        shutil.rmtree(reframe.session, ignore_errors=True)
        if isinstance(error, RefusedError):
            raise RefusedError(error.said, log) from None
        raise
