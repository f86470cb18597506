"""The error that the user can correct: one line, no traceback."""

from __future__ import annotations


class UsageError(Exception):
    """Wrong use or configuration. The text is one line: file, key or row, and the fix.

    The command line prints it and ends with exit status 2.
    """
