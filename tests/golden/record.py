"""Writes the golden outputs anew and says what changed: ``python -m tests.golden.record [SCENE...]``."""

import difflib
import importlib
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from tests.golden.stage import open_stage

OUTPUTS = Path(__file__).with_name("outputs")
COMMAND = ".plumbline/venv/bin/python -m tests.golden.record"
#: Modules whose ``play(stage)`` is recorded, each into a folder of its name.
SCENES = ("usage", "errors", "damages", "schemas", "numbers", "reports", "store", "judged", "pages")


def play(scene: str) -> dict[str, str]:
    """Play a scene; what came of it by file name."""
    module = importlib.import_module(f"tests.golden.{scene}")
    with open_stage() as stage:
        module.play(stage)
    return stage.texts


def read_recorded(scene: str) -> dict[str, str]:
    """Read what was recorded of a scene, by file name."""
    files = sorted((OUTPUTS / scene).glob("*"))
    return {path.name: path.read_bytes().decode("utf-8") for path in files}


def compare(scene: str, recorded: Mapping[str, str], played: Mapping[str, str]) -> str:
    """Compare what was recorded with what came now, as a unified diff; empty if it is the same."""
    parts = []
    for name in sorted({*recorded, *played}):
        before, after = (
            [f"{line}\n" for line in files[name].split("\n")] if name in files else []
            for files in (recorded, played)
        )
        where = f"tests/golden/outputs/{scene}/{name}"
        if before != after:
            parts += difflib.unified_diff(before, after, f"{where} (recorded)", f"{where} (now)")
    return "".join(parts)


def write_recorded(scene: str, played: Mapping[str, str]) -> None:
    """Write what came of a scene, and remove what does not come any more."""
    folder = OUTPUTS / scene
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.glob("*"):
        if path.name not in played:
            path.unlink()
    for name, text in played.items():
        (folder / name).write_bytes(text.encode("utf-8"))


def main(scenes: Sequence[str]) -> int:
    """Record scenes, all of them if none is named, and print what changed."""
    for scene in scenes or SCENES:
        played = play(scene)
        print(compare(scene, read_recorded(scene), played) or f"{scene}: unchanged\n", end="", flush=True)
        write_recorded(scene, played)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
