"""The error of this package."""

from __future__ import annotations


class SpackEnvironmentError(Exception):
    """An environment cannot be made on this machine. The text is one line: what, and the fix."""
