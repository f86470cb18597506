"""Keep standard output and error usable if the reader leaves, the disk is full or the descriptor is closed.

Measurements are worth more than their printed progress: a night whose terminal or pipe is gone runs to its end.
"""

import errno
import io
import os
import sys

GONE = (errno.EPIPE, errno.EIO)  #: the reader of the pipe left, or the terminal was closed


class Stream(io.FileIO):
    """A descriptor that continues to ``/dev/null`` after a failed write.

    ``failure`` is the error, or None if the reader merely left.
    """

    failure: OSError | None = None

    def write(self, data: object) -> int:
        """Write the data. Keep an error of the descriptor instead of raising it."""
        try:
            return super().write(data)  # type: ignore[arg-type]
        except BlockingIOError:
            raise
        except OSError as error:
            self.failure = None if error.errno in GONE else error
            discard(self.fileno())
            return super().write(data)  # type: ignore[arg-type]


def discard(descriptor: int) -> None:
    """Redirect a descriptor to ``/dev/null``."""
    null = os.open(os.devnull, os.O_RDWR)
    os.dup2(null, descriptor)
    if null != descriptor:
        os.close(null)


def open_stream(descriptor: int) -> tuple[io.TextIOWrapper, Stream]:
    """Open a standard stream with the buffering that Python uses: by lines on a terminal."""
    stream = Stream(descriptor, "wb", closefd=False)
    text = io.TextIOWrapper(
        io.BufferedWriter(stream),
        encoding=getattr(sys.__stdout__, "encoding", None) or "utf-8",
        errors="backslashreplace",
        line_buffering=stream.isatty() or descriptor != 1,
    )
    return text, stream


def secure_streams() -> Stream:
    """Replace standard output and error by streams that never raise. Return the stream of standard output."""
    sys.stdout, output = open_stream(1)
    sys.stderr, _ = open_stream(2)
    return output


def finish_output(output: Stream, status: int) -> int:
    """Flush the output and return the exit status: 2 instead of success if something could not be written."""
    sys.stdout.flush()
    if output.failure is None:
        return status
    reason = output.failure.strerror
    sys.stderr.write(f"plumbline: standard output: {reason}; what was printed is not whole\n")
    sys.stderr.flush()
    return status or 2
