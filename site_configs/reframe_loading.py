"""ReFrame's own modules, imported in half of the time."""

import inspect
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import FrameType, ModuleType, SimpleNamespace


def list_frames() -> Iterator[SimpleNamespace]:
    """List the frames of the stack as :func:`inspect.stack` does, without the source behind each."""
    frame: FrameType | None = sys._getframe(1)
    while frame is not None:
        yield SimpleNamespace(frame=frame)
        frame = frame.f_back


def find_module(frame: FrameType) -> ModuleType | None:
    return sys.modules.get(frame.f_globals.get("__name__", ""))


def load_reframe() -> None:
    """Import ReFrame, and make it find the user of a deprecated variable from stack frames alone.

    It reads the source behind each frame even if no warning follows: 20 ms per test and per line of its log,
    which is half of the time of a dry run. Its own modules do the same while they are imported.
    """
    real = inspect.stack, inspect.getmodule
    setattr(inspect, "stack", list_frames)  # noqa: B010 - assigned, its type would be asked for
    setattr(inspect, "getmodule", find_module)  # noqa: B010
    with stand_in_for("requests"):
        from reframe.core import warnings

    inspect.stack, inspect.getmodule = real
    warnings.inspect = SimpleNamespace(stack=list_frames, getmodule=find_module)


@contextmanager
def stand_in_for(name: str) -> Iterator[None]:
    """Replace a module, while others import it, by one that loads it on first use.

    ``requests`` takes a fifth of the time of importing ReFrame, which sends no logs over a network here.
    """
    if name in sys.modules:
        yield
        return
    module = sys.modules[name] = ModuleType(name)
    setattr(module, "__getattr__", lambda word: getattr(import_module(name), word))  # noqa: B010
    yield
    del sys.modules[name]
