"""The views in PostgreSQL, and each query of the dashboard over them, on a real server."""

import json
import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest

from postprocess.model.verdict import Verdict
from postprocess.results.store import StoreRow, write_session
from tests.support.paths import ROOT
from tests.support.postgres import Server, running
from tests.unit.postprocess.results.test_store import ROW

DASHBOARD = json.loads((ROOT / "docs" / "grafana" / "plumbline.json").read_text())
KEY = ROW.case.key
#: Name, day, mode and verdict of sessions, each of two launches.
SESSIONS = (
    ("20261001T010000Z-1", "2026-10-01", "nightly", Verdict.PASS),
    ("20261130T010000Z-1", "2026-11-30", "import", Verdict.REGRESSED),
    ("20261201T010000Z-1", "2026-12-01", "nightly", Verdict.REGRESSED),
    ("20261202T010000Z-1", "2026-12-02", "calibrate", Verdict.NO_REFERENCE),  # no night
)


def rows(name: str, day: str, mode: str, verdict: Verdict) -> list[StoreRow]:
    """Two launches of a case, twice as slow as its reference in the middle."""
    told = replace(ROW, session=name, started_utc=f"{day}T01:00:00Z", mode=mode, verdict=verdict)
    told = replace(told, reference=1e-6, lower=0.9e-6, upper=1.1e-6, expected="")
    return [replace(told, launch=number, value=number * 1e-6 + 0.5e-6) for number in (1, 2)]


@pytest.fixture(scope="module")
def dsn(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    from postprocess.results.postgres import load_store

    folder = tmp_path_factory.mktemp("store")
    for session in SESSIONS:
        write_session(folder / f"{session[0]}.parquet", rows(*session))
    with running() as server:
        dsn = Server(server.folder).create("dashboard")
        load_store(folder, dsn, lambda _: None)
        assert load_store(folder, dsn, lambda _: None).known == len(SESSIONS)  # views stay
        yield dsn


def query(dsn: str, text: str) -> list[dict[str, Any]]:
    """Rows by the names of their columns. Grafana's words are replaced as Grafana does."""
    import psycopg
    from psycopg.rows import dict_row

    since, until = "'2026-11-15T00:00:00Z'", "'2026-12-31T00:00:00Z'"  # from the middle of a month
    text = re.sub(r"\$__timeFilter\((\w+)\)", rf"\1 BETWEEN {since} AND {until}", text)
    words = {"$__timeFrom()": since, "$__timeTo()": until}
    words |= {"${system:sqlstring}": f"'{ROW.case.system}'", "${case:sqlstring}": f"'{KEY}'"}
    for word, value in words.items():
        text = text.replace(word, value)
    assert "$" not in text
    with psycopg.connect(dsn, row_factory=dict_row) as connection:
        return connection.execute(text).fetchall()


def test_the_last_night_has_a_row_for_each_case(dsn: str) -> None:
    (row,) = query(dsn, "SELECT * FROM plumbline_last_night")
    assert (row["session"], row["launches"], row["verdict"]) == (SESSIONS[2][0], 2, "regressed")
    assert row["median"] == pytest.approx(2e-6) and row["slowdown"] == pytest.approx(2)


def test_a_bandwidth_below_its_reference_is_a_slowdown(dsn: str) -> None:
    from postprocess.results.postgres import SLOWDOWN

    text = f"SELECT {SLOWDOWN} AS slowdown FROM (VALUES ('MB/s', 50.0, 100.0)) AS x (unit, median, reference)"
    assert float(query(dsn, text)[0]["slowdown"]) == 2


def test_alarms_are_counted_by_month_in_nights_alone(dsn: str) -> None:
    found = query(dsn, "SELECT * FROM plumbline_alarms_by_month ORDER BY month")
    told = [(row["month"].month, row["nights"], row["failed_nights"], row["regressed"]) for row in found]
    assert told == [(10, 1, 0, 0), (11, 1, 1, 1), (12, 1, 1, 1)]


def queries() -> dict[str, str]:
    """Every query of the dashboard, by the name of its panel or variable."""
    found = {p["title"]: target["rawSql"] for p in DASHBOARD["panels"] for target in p["targets"]}
    variables = DASHBOARD["templating"]["list"]
    return found | {
        variable["name"]: variable["query"] for variable in variables if variable["type"] == "query"
    }


@pytest.mark.parametrize(
    ("name", "rows", "columns"),
    [
        ("Cases of the last night by verdict", 1, {"verdict": "regressed", "cases": 1}),
        ("Last night: what is not well first", 1, {"key": KEY, "verdict": "regressed"}),
        ("History of a case", 2, {"reference": 1e-6}),
        ("Alarms a month", 2, {"month": "2026-11", "regressed": 1}),
        ("system", 1, {"system": ROW.case.system}),
        ("case", 1, {"key": KEY}),
    ],
)
def test_each_query_of_the_dashboard_answers(dsn, name, rows, columns):
    found = query(dsn, queries()[name])
    assert len(found) == rows and columns.items() <= found[0].items()


def test_the_last_night_has_failures_first_then_what_is_suspect_and_what_is_well_last(dsn: str) -> None:
    slowdowns = {"pass": 9.0, "provisional": 8.0, "suspect": 1.0, "fast": 0.5, "regressed": 1.5}
    told = ", ".join(f"('{verdict}', {slowdown})" for verdict, slowdown in slowdowns.items())
    columns = 'system, started_utc, "key", told.verdict, median, unit, reference, upper, told.slowdown, reason'
    night = f"SELECT {columns} FROM plumbline_last_night, (VALUES {told}) AS told (verdict, slowdown)"
    text = queries()["Last night: what is not well first"].replace(
        "plumbline_last_night", f"({night}) AS night"
    )
    verdicts = [row["verdict"] for row in query(dsn, text)]
    assert verdicts == ["regressed", "suspect", "provisional", "pass", "fast"]


def test_no_query_of_the_dashboard_is_untried_and_no_panel_on_another() -> None:
    panels = DASHBOARD["panels"]
    assert len(queries()) == 6 and len({panel["id"] for panel in panels}) == len(panels)
    places = [
        (x, y)
        for at in (panel["gridPos"] for panel in panels)
        for x in range(at["x"], at["x"] + at["w"])
        for y in range(at["y"], at["y"] + at["h"])
    ]
    assert len(places) == len(set(places)) and max(places)[0] < 24
