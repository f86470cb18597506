"""The version of Plumbline: that of ``pyproject.toml``, which a test compares."""

VERSION = "0.1.0"
