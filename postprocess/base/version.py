"""The version of Plumbline. A test compares it with ``pyproject.toml``."""

VERSION = "0.1.0"
