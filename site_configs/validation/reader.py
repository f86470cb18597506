"""Read a site file and collect all of its faults, whereas ReFrame stops at the first one.

``reader_main`` runs as a separate process, because a site file is a program and may do anything.
``site_configs.validation.rules`` judges the contents.
"""

import functools
import inspect
import json
import runpy
import sys
import traceback
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

import reframe
from reframe.core import backends

from postprocess.base import files
from postprocess.base.errors import propose_or_list
from postprocess.base.sanitize import quote_word
from site_configs import common
from site_configs.topology.layouts import Topology
from site_configs.validation.reading import SiteFault, SiteReading


def copy_plain(thing: Any) -> Any:
    """Copy a value as plain lists, mappings, texts and numbers."""
    return json.loads(json.dumps(thing, default=str))


def find_changes(made: Any, now: Any, where: str = "") -> Iterator[str]:
    """Find the places that were changed or removed; an added key does not count."""
    if isinstance(made, dict) and isinstance(now, dict):
        for key, value in made.items():
            place = f"{where}.{key}" if where else key
            yield from find_changes(value, now[key], place) if key in now else [place]
    elif isinstance(made, list) and isinstance(now, list) and len(made) == len(now):
        for number, pair in enumerate(zip(made, now, strict=True)):
            yield from find_changes(*pair, f"{where}[{number}]")
    elif made != now:
        yield where


#: Arguments that are lists: a text instead of one would be taken letter by letter.
LISTS = ("access", "environments", "hostnames", "modules", "partitions")

#: The functions and classes of which a site file consists.
PIECES = ("environment", "partition", "site", "Topology")


def list_partition_keys() -> set[str]:
    """List the keys of a partition in ReFrame's own schema."""
    schema = json.loads(files.read_text(Path(reframe.__file__).with_name("schemas").joinpath("config.json")))
    system = schema["properties"]["systems"]["items"]["properties"]
    return set(system["partitions"]["items"]["properties"])


@dataclass
class Call:
    """One call in a site file, before it is executed."""

    name: str
    parameters: Mapping[str, inspect.Parameter]
    args: Sequence[Any]
    kwargs: dict[str, Any]
    more: set[str] = field(default_factory=set)  #: keys besides the parameters

    @property
    def bound(self) -> dict[str, Any]:
        """All arguments by name."""
        return dict(zip(self.parameters, self.args, strict=False)) | self.kwargs

    @property
    def key(self) -> str:
        return f"{self.name} {self.bound.get('name', '')}".strip()

    def correct(self) -> Iterator[str]:
        """Find wrong arguments, and replace them by values with which reading can continue."""
        title = f"{self.name} {self.bound['name']!r}" if "name" in self.bound else self.name
        allowed = {name for name in self.parameters if name != "more"} | self.more
        unknown = [word for word in self.kwargs if word not in allowed]
        for word in unknown:
            yield f"{title}: {word}: is not known; {propose_or_list(word, allowed)}"
            del self.kwargs[word]
        for word in LISTS:
            value = self.kwargs.get(word, [])
            if not isinstance(value, list | tuple):
                yield f"{title}: {word}: write a list: [{value!r}]"
                self.kwargs[word] = [value] if isinstance(value, str) else []
        if not unknown:  # otherwise one of those is the missing one
            yield from (f"{title}: {word}: is missing" for word in self.missing())

    def missing(self) -> list[str]:
        """Return the required parameters without a value."""
        return [
            name
            for name, parameter in self.parameters.items()
            if parameter.default is parameter.empty
            and parameter.kind != parameter.VAR_KEYWORD
            and name not in self.bound
        ]

    def stand_in(self) -> Any:
        """Return a placeholder for the result of a wrong call."""
        if self.name == "Topology":
            return Topology(1)
        named = {"name": str(self.bound.get("name", ""))}
        if self.name == "partition":
            named_there = self.bound.get("environments", ())
            return named | {"environs": [word for word in named_there if isinstance(word, str)]}
        if self.name == "site":
            parts = {word: list(self.bound.get(word, ())) for word in ("partitions", "environments")}
            system = named | {"partitions": parts["partitions"], "hostnames": []}
            return {"systems": [system], "environments": parts["environments"]}
        return named


CHECKS = Path(__file__).resolve().parents[2] / "reframe_checks"


def describe_plain(path: Path) -> str:
    """Describe a plain ReFrame configuration, with the command that tries it."""
    command = f"reframe -C {quote_word(str(path))} -c {quote_word(str(CHECKS))} --dry-run"
    return (
        "site_configuration: is a configuration of ReFrame's own, and no site file: site check cannot check "
        f"it; try it with {command} (docs/reframe.md), or make it of site(...)"
    )


class Reader:
    """Run one site file with its functions replaced by ones that collect faults."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.reading = SiteReading()
        self.made: list[Any] = []  #: all results of our functions; others are written by hand
        self.copies: list[Any] = []  #: copies of the results as they were made
        self.as_made = True  #: whether the results are unchanged
        self.plain = False  #: whether the file has a configuration that uses none of our functions

    def read(self) -> SiteReading:
        """Read the site as far as possible."""
        with ExitStack() as stack:
            for name in PIECES:
                piece = getattr(common, name)
                more = list_partition_keys() if name == "partition" else set()
                setattr(common, name, self.collecting(piece, name, more))
                stack.callback(setattr, common, name, piece)
            self.run()
        if self.reading.configuration is None and not self.reading.faults:
            missing = "site_configuration: is missing; set it to what site(...) returns"
            self.fault(0, describe_plain(self.path) if self.plain else missing)
        self.look_at_backends()
        self.reading.faults.sort()
        return self.reading

    def run(self) -> None:
        try:
            configuration = runpy.run_path(str(self.path)).get("site_configuration")
        except SyntaxError as error:
            self.fault(error.lineno or 0, f"is not Python: {error.msg}")
        except (Exception, SystemExit) as error:
            frames = traceback.extract_tb(error.__traceback__)
            lines = [frame.lineno or 0 for frame in frames if frame.filename == str(self.path)]
            is_site_error = isinstance(error, common.SiteError)
            if isinstance(error, common.NotInstalledError):
                self.reading.not_installed = str(error)
            what = str(error) if is_site_error else f"{type(error).__name__}: {error}"
            self.fault(lines[-1] if lines else 0, " ".join(what.split()))
        else:
            for text in self.changed(configuration):
                self.fault(0, f"site_configuration: {text}")
            well = self.is_made(configuration) and self.as_made
            self.plain = isinstance(configuration, dict) and not self.made
            self.reading.configuration = configuration if well else None

    def collecting(self, function: Callable, name: str, more: set[str]) -> Callable:
        """Wrap a function so that a wrong call is recorded as a fault and returns a usable placeholder."""
        parameters = inspect.signature(function).parameters

        @functools.wraps(function, updated=())
        def make(*args: Any, **kwargs: Any) -> Any:
            line = self.line_of_call()
            call = Call(name, parameters, args, kwargs, more)
            self.reading.lines.setdefault(call.key, line)
            texts = list(call.correct()) + list(self.by_hand(call))
            made = None
            if not call.missing():
                try:
                    result = function(*args, **call.kwargs)
                    copy, made = copy_plain(result), result
                except (TypeError, ValueError) as error:
                    texts.append(str(error))
            self.reading.faults += [SiteFault(line, text) for text in texts]
            self.reading.broken += [call.key] if texts else []
            self.made.append(call.stand_in() if made is None else made)
            self.copies.append({} if made is None else copy)
            return self.made[-1]

        return make

    def changed(self, thing: Any) -> Iterator[str]:
        """Return the places at which an object was changed after our function made and checked it."""
        for made, copy in zip(self.made, self.copies, strict=True):
            if thing is made:
                for where in find_changes(copy, copy_plain(thing)):
                    self.as_made = False
                    yield f"{where}: was changed after it was made; write it as an argument"

    def is_made(self, thing: Any) -> bool:
        """Return whether one of our functions made it."""
        return any(thing is made for made in self.made)

    def by_hand(self, call: Call) -> Iterator[str]:
        """Return the parts of a site that none of our functions made, so that checks would lack their facts."""
        for word in ("partitions", "environments") if call.name == "site" else ():
            parts = [part for part in call.kwargs.get(word, ()) if self.is_made(part)]
            if len(parts) < len(call.kwargs.get(word, ())):
                yield f"site {call.bound.get('name')!r}: {word}: make each with {word[:-1]}(...)"
            call.kwargs[word] = parts
            for part in parts:
                title = f"{word[:-1]} {part['name']!r}" if "name" in part else word
                yield from (f"{title}: {text}" for text in self.changed(part))

    def line_of_call(self) -> int:
        """Return the current line of the site file."""
        frame: FrameType | None = sys._getframe()
        while frame and frame.f_code.co_filename != str(self.path):
            frame = frame.f_back
        return frame.f_lineno if frame else 0

    def fault(self, line: int, text: str) -> None:
        self.reading.faults.append(SiteFault(line, text))

    def look_at_backends(self) -> None:
        """Read the launchers and schedulers that are registered once the site is read."""
        for kind, get in (("launcher", backends.getlauncher), ("scheduler", backends.getscheduler)):
            get("local")  # loads those that come with ReFrame
            registry = getattr(backends, f"_{kind}s")
            setattr(self.reading, f"{kind}s", sorted(registry))
            self.reading.unusable |= {
                f"{kind} {name}": str(problem) for name, (_, problem) in registry.items() if problem
            }


def main(path: str, result: str) -> None:
    """Read one site file and write down what it says, as JSON."""
    reading = Reader(Path(path)).read()
    Path(result).write_text(json.dumps(asdict(reading), default=str))
