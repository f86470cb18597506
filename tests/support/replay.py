"""A launcher that starts the MPI's own mpiexec once, and then repeats what that launch measured.

Used as ``python replay.py FOLDER -n N PROGRAM OPTION...``. Token, command and times are those of the launch at
hand, without which nothing would be taken for its own.
"""

import json
import shutil
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path
from typing import Any


def option(words: list[str], name: str) -> str:
    """The value of an option of mpicost."""
    return next(word.partition("=")[2] for word in words if word.startswith(f"--{name}="))


def select(lines: list[dict[str, Any]], routines: str) -> list[dict[str, Any]]:
    """The records of a launch of some of the cases, as ``bcast:0:8,barrier``."""
    asked = {name: sizes for name, *sizes in (each.split(":") for each in routines.split(","))}
    cases = [
        line
        for line in lines[1:-1]
        if line["routine"] in asked and str(line["bytes"]) in (asked[line["routine"]] or [str(line["bytes"])])
    ]
    run, end = ({**each, "cases": len(cases)} for each in (lines[0], lines[-1]))
    return [run, *cases, end]


def main(folder: str, *words: str) -> int:
    """Launch, or repeat; the exit status."""
    mpiexec = shutil.which("mpiexec")
    output, command = Path(option([*words], "output")), [*words[2:]]
    kept = Path(folder, f"{Path(mpiexec).parent.parent.name}.{words[1]}.jsonl")
    if not kept.exists():
        status = subprocess.run([mpiexec, *words], check=False).returncode
        if status == 0:
            shutil.copy(output, kept)
        return status
    lines = [json.loads(line) for line in kept.read_text().splitlines()]
    lines = select(lines, option([*words], "routine"))
    now = datetime.now(timezone.utc).strftime("%Y-%m-%dT%H:%M:%SZ")
    token = option([*words], "token")
    lines[0] |= {"command": command, "date_utc": now, "token": token}
    lines[-1] |= {"ended_utc": now, "token": token}
    output.write_text("".join(json.dumps(each) + "\n" for each in lines))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
