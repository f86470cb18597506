"""Nights of a site, made up and written as a real one writes them; and stores of an older version."""

import json
from dataclasses import dataclass, fields
from datetime import datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import polars as pl

from postprocess.model.case import Case
from postprocess.results import store
from postprocess.results.store import SCHEMA

FIRST_NIGHT = datetime(2021, 11, 22, 1, 30, tzinfo=timezone.utc)
ENVIRONMENTS = ("intel-mpi-2021_19_0", "mpich-5_0_2", "openmpi-5_0_9")
TRIALS = 51
MPICOST_SHARE = 15  #: one case in so many has trials
SIZES_OF_A_LAUNCH = 20
SIZES = (0, 8, 64, 1024, 8192, 65536, 1048576)


@dataclass(frozen=True)
class Site:
    """A made-up site: as many cases each night, of which some are mpicost's and have trials."""

    cases: int = 5000
    seed: int = 1

    def keys(self) -> list[Case]:
        """The cases of every night; a fifteenth is mpicost's."""
        made = []
        for number in range(self.cases):
            place, environment = divmod(number, len(ENVIRONMENTS))
            place, size = divmod(place, len(SIZES))
            own = number % MPICOST_SHARE == 0
            program = "mpicost" if own else ("osu", "imb")[place % 2]
            cache, sync = ("evict", "dissemination") if own else ("warm", "loop")
            routine = f"routine{place % 30}"
            processes = 2 + place // 30
            words = ("cluster", "cpu", ENVIRONMENTS[environment], program, routine)
            made.append(Case(*words, 0, cache, sync, processes, processes, SIZES[size]))
        return made

    def night(self, number: int) -> pl.DataFrame:
        """The rows of one night, counted from the first."""
        random = np.random.default_rng((self.seed, number))
        started = FIRST_NIGHT + timedelta(days=number)
        frame = self.constant()
        usual = 1e-6 * (1 + np.arange(frame.height) % 1000)
        values = usual * random.lognormal(0, 0.02, frame.height)
        own = frame["program"].to_numpy() == "mpicost"
        series = {name: trials(usual, own, random) for name in store.SERIES}
        late = [[False] * TRIALS if each else [] for each in own]
        statistics = {
            name: pl.when(pl.Series(own)).then(pl.Series(values * factor))
            for name, factor in (("headline", 1), ("median", 0.99), ("minimum", 0.9), ("p90", 1.1))
        }
        return frame.with_columns(
            session=pl.lit(session_name(number)),
            started_utc=pl.lit(started.strftime("%Y-%m-%dT%H:%M:%SZ")),
            value=pl.Series(values),
            reference=pl.Series(usual),
            lower=pl.Series(usual * 0.9),
            upper=pl.Series(usual * 1.1),
            q=pl.Series(random.uniform(size=frame.height)),
            detectable=pl.Series(0.08 + 0.02 * random.uniform(size=frame.height)),
            provenance=pl.Series(self.provenances(frame["launch"], random)),
            late=pl.Series(late, dtype=SCHEMA["late"]),
            **{name: pl.Series(lists, dtype=SCHEMA[name]) for name, lists in series.items()},
            **statistics,
        ).select(SCHEMA.names())

    def constant(self) -> pl.DataFrame:
        """What is the same every night."""
        rows = []
        for number, case in enumerate(self.keys()):
            words = {field.name: getattr(case, field.name) for field in fields(Case)}
            own = case.program == "mpicost"
            rows.append({
                **words,
                "key": case.key,
                "launch": 1 + number // SIZES_OF_A_LAUNCH,
                "verdict": "pass",
                "reason": "",
                "unit": "s",
                "figures": "{}" if own else json.dumps({"Avg Latency(us)": 1.0 + number}),
                "expected": "",
                "mode": "nightly",
                "hosts": "n1,n2",
                "compiler": "gcc 12.2.0",
                "flags": "-O3 -DNDEBUG",
                "mpi_library": f"{case.environment} as it says itself",
                "dropped": 1,
            })  # fmt: skip
        missing = {name: type_ for name, type_ in SCHEMA.items() if name not in rows[0]}
        return pl.DataFrame(rows).with_columns(**{
            name: pl.lit("" if type_ == pl.String else None, dtype=type_) for name, type_ in missing.items()
        })  # fmt: skip

    def provenances(self, launches: pl.Series, random: np.random.Generator) -> list[str]:
        """A run record of each launch, about as long as a real one."""
        variables = {f"SOME_VARIABLE_{number}": f"value {number}" for number in range(60)}
        hosts = [{"name": "n1", "ranks": 2}, {"name": "n2", "ranks": 2}]
        record = {"record": "run", "hosts": hosts, "environment": variables}
        made = {
            launch: json.dumps(record | {"seed": int(random.integers(2**32))}) for launch in launches.unique()
        }
        return [made[launch] for launch in launches]

    def write(self, directory: Path, number: int) -> Path:
        """Store one night."""
        path = directory / f"{session_name(number)}{store.SUFFIX}"
        store.write_frame(path, self.night(number))
        return path


def session_name(number: int) -> str:
    return (FIRST_NIGHT + timedelta(days=number)).strftime("%Y%m%dT%H%M%SZ-4711")


def trials(usual: np.ndarray, own: np.ndarray, random: np.random.Generator) -> list[list[float]]:
    """The trials of each row, to the nanosecond; none where the program tells none."""
    noise = random.lognormal(0, 0.1, (own.size, TRIALS))
    times = np.round(usual[:, None] * noise, 9)
    return [each.tolist() if mine else [] for each, mine in zip(times, own, strict=True)]
