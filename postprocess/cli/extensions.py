"""Extensions: packages that bring commands of their own, and that the core does not know.

Those of this repository lie in ``postprocess/extensions``. An installed package names the :class:`Extension` it
has as an entry point of the group ``plumbline.extensions``.
"""

import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.metadata import entry_points
from pathlib import Path
from pkgutil import iter_modules
from typing import Any

from postprocess.base.sanitize import sanitize_line

GROUP = "plumbline.extensions"
PACKAGE = "postprocess.extensions"
FOLDER = Path(__file__).resolve().parents[1] / "extensions"


@dataclass(frozen=True)
class ExtensionCommand:
    name: str
    module: str  #: as :func:`postprocess.cli.parser.add_commands` takes it, or ``module:NAME``
    section: str  #: of ``--help``
    help: str  #: one line


@dataclass(frozen=True)
class Extension:
    commands: tuple[ExtensionCommand, ...]
    #: Who checks a folder of ``reference_data`` of that name: ``module:function``, from a path to what is wrong
    linters: Mapping[str, str] = field(default_factory=dict)


@cache
def find_extensions() -> tuple[Extension, ...]:
    """Find the extensions beside the core, and those that are installed.

    An installed one that cannot be imported, or is none, is left out with a line on standard error: a night
    does not depend on it.
    """
    own = sorted(module.name for module in iter_modules([str(FOLDER)]))
    return (*(import_module(f"{PACKAGE}.{name}").EXTENSION for name in own), *_find_installed())


def _find_installed() -> Iterator[Extension]:
    for point in entry_points(group=GROUP):
        try:
            found = point.load()
            problem = "" if isinstance(found, Extension) else "is not an Extension"
        except Exception as error:  # whatever the package of others does
            found, problem = None, f"{type(error).__name__}: {error}"
        if problem:
            what = f"extension {point.name} ({point.value}): {problem}; left out: mend or uninstall it"
            print(f"plumbline: {sanitize_line(what)}", file=sys.stderr)
        else:
            yield found


def find_linters() -> dict[str, str]:
    """Find who checks which folders of ``reference_data``."""
    return {name: told for extension in find_extensions() for name, told in extension.linters.items()}


def load_named(told: str) -> Any:
    """Load a module, or what it has under a name: ``module`` or ``module:name``."""
    module, _, name = told.partition(":")
    loaded = import_module(module)
    return getattr(loaded, name) if name else loaded
