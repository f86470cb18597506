"""What a night costs, and what the same coverage would cost as one job per point.

    python -m tests.performance.night_cost SESSION [--sample 24] [--seed 1]

SESSION is the directory of a night that has ended. A sample of its points is measured again, each in a
job of its own as most suites do it, under the same work directory; what ReFrame tells of such a job, its
own set-up left out, is extrapolated to all points. Times in seconds, on this machine, as it was then.
"""

import argparse
import json
import os
import random
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

from tests.support.paths import ROOT


def tests_of(session: Path) -> list[dict]:
    """The test cases of ReFrame's report that are no builds."""
    report = json.loads((session / "reframe" / "report.json").read_text())
    return [case for case in report["runs"][-1]["testcases"] if not case.get("fixture")]


def seconds_in_programs(session: Path) -> float:
    """From MPI_Init to MPI_Finalize of every start, by mpicost's own record or its witness."""
    return sum(end["elapsed"] for path in (session / "raw").glob("*.jsonl") for end in ends(path))


def ends(path: Path) -> Iterator[dict]:
    """The end records of one file."""
    for line in path.read_text().splitlines():
        record = json.loads(line)
        if record["record"] == "end":
            yield record


def one_job(rerun: str, home: Path) -> float:
    """Measure one point in a job of its own; the seconds of its test in ReFrame."""
    known = set((home / "sessions").iterdir())
    words = [sys.executable, "plumbline", *shlex.split(rerun)[1:]]
    environ = {**os.environ, "PLUMBLINE_HOME": str(home)}
    subprocess.run(words, check=False, cwd=ROOT, env=environ, capture_output=True)
    new = sorted(set((home / "sessions").iterdir()) - known)[-1]
    return sum(case["time_total"] for case in tests_of(new))


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("session", type=Path)
    parser.add_argument("--sample", type=int, default=24)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    session = arguments.session.resolve()
    summary = json.loads((session / "summary.json").read_text())
    points = [case for case in summary["cases"] if case["value"] is not None]
    jobs, starts = tests_of(session), len(summary["launches"])
    wall, inside = sum(case["time_total"] for case in jobs), seconds_in_programs(session)
    phases = ", ".join(f"{name} {seconds:.1f}" for name, seconds in summary["phases"].items())
    print(f"{len(points)} points in {starts} starts in {len(jobs)} jobs; phases: {phases}")
    print(f"jobs {wall:.1f} s, of which inside the programs {inside:.1f} s ({inside / wall:.0%})")
    chosen = random.Random(arguments.seed).sample(points, min(arguments.sample, len(points)))
    singles = [one_job(case["rerun"], session.parent.parent) for case in chosen]
    each = sum(singles) / len(singles)
    total = each * len(points)
    print(f"one job per point: {each:.2f} s each ({len(singles)} measured), so {total:.0f} s in all")
    print(f"that is {total / wall:.1f} times the jobs of this night")


if __name__ == "__main__":
    main()
