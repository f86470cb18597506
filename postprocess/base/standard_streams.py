"""Standard output and standard error that no reader, full disk or closed descriptor makes a reason to stop.

What is measured is worth more than who reads of it: a night whose terminal or pipe is gone runs to its end.
"""

import errno
import io
import os
import sys

GONE = (errno.EPIPE, errno.EIO)  #: a pipe whose reader went away, a terminal that was closed


class Stream(io.FileIO):
    """A descriptor that goes on with ``/dev/null`` when it cannot be written to any more.

    ``failure`` is why, unless its reader merely went away.
    """

    failure: OSError | None = None

    def write(self, data: object) -> int:
        """Write; an error of the descriptor is kept, and not raised."""
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BlockingIOError:
            raise
        except OSError as error:
            self.failure = None if error.errno in GONE else error
            discard(self.fileno())
            return super().write(data)  # type: ignore[arg-type]


def discard(descriptor: int) -> None:
    """Let a descriptor lead to ``/dev/null``."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    if null != descriptor:
        os.close(null)


def open_stream(descriptor: int) -> tuple[io.TextIOWrapper, Stream]:
    """Open a standard stream, buffered by lines on a terminal as Python does it."""
    stream = Stream(descriptor, "wb", closefd=False)
    text = io.TextIOWrapper(
        io.BufferedWriter(stream),
        encoding=getattr(sys.__stdout__, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=stream.isatty() or descriptor != 1,
    )
    return text, stream


def secure_streams() -> Stream:
    """Replace standard output and error by streams that never raise. Returns that of standard output."""
    sys.stdout, output = open_stream(1)
    sys.stderr, _ = open_stream(2)
    return output


def finish_output(output: Stream, status: int) -> int:
    """Write what is left. Returns the exit status: what could not be written makes a success status 2."""
    sys.stdout.flush()
    if output.failure is None:
        return status
    reason = output.failure.strerror
    sys.stderr.write(f"plumbline: standard output: {reason}; what was printed is not whole\n")
    sys.stderr.flush()
    return status or 2
