"""The errors of this package."""

from __future__ import annotations


class SpackEnvironmentError(Exception):
    """An environment cannot be made on this machine. The text is one line: what, and the fix."""


class SourceError(SpackEnvironmentError):
    """The source of a program cannot be fetched: on this machine there is nothing to build it from."""
