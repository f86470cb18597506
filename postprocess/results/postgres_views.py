"""Views over the tables in PostgreSQL, for dashboards: cases of all nights, of the last one, alarms a month.

A night is a session of ``nightly`` or ``import``. A view has one row for a case, whatever number of launches.
"""

from __future__ import annotations

import psycopg
from psycopg import sql

from postprocess.model.verdict import HEALTHY

NIGHT = "mode IN ('nightly', 'import')"
#: Of a row what all launches of a case in a session share.
SHARED = (
    'session, started_utc, mode, "key", system, "partition", environment, program, routine, processes, '
    "per_node, bytes, verdict, reason, expected, unit, reference, lower, upper, q, detectable"
)
#: Above 1 is worse in every unit, as in ``units.compute_slowdown``.
SLOWDOWN = "CASE unit WHEN 'MB/s' THEN reference / nullif(median, 0) ELSE median / nullif(reference, 0) END"
MEDIANS = (
    f"SELECT {SHARED}, count(value) AS launches, "
    "percentile_cont(0.5) WITHIN GROUP (ORDER BY value) AS median "
    f"FROM plumbline_cases WHERE {NIGHT}{{more}} GROUP BY {SHARED}"
)
#: Nights by system and time without a look at the trials: five years of nights have millions of rows.
INDEX = (
    "CREATE INDEX IF NOT EXISTS plumbline_nights ON plumbline_cases (system, started_utc, session) "
    f'INCLUDE ("key", verdict, expected, mode) WHERE {NIGHT}'
)
LAST = (
    "SELECT DISTINCT ON (system) session FROM plumbline_cases "
    f"WHERE {NIGHT} ORDER BY system, started_utc DESC, session DESC"
)
WELL = ", ".join(f"'{verdict}'" for verdict in sorted(HEALTHY))
CASES = (
    'SELECT DISTINCT system, started_utc, session, "key", verdict, expected '
    f"FROM plumbline_cases WHERE {NIGHT}"
)

#: Name -> its query. A column is never taken away or moved: ``CREATE OR REPLACE`` keeps who may read a view.
VIEWS = {
    "plumbline_history": f"SELECT *, {SLOWDOWN} AS slowdown FROM ({MEDIANS.format(more='')}) AS cases",
    "plumbline_last_night": f"SELECT *, {SLOWDOWN} AS slowdown "
    f"FROM ({MEDIANS.format(more=f' AND session IN ({LAST})')}) AS cases",
    "plumbline_alarms_by_month": "SELECT date_trunc('month', started_utc) AS month, system, "
    "count(DISTINCT session) AS nights, "
    f"count(DISTINCT session) FILTER (WHERE {{failed}}) AS failed_nights, "
    "count(*) FILTER (WHERE verdict = 'regressed' AND expected = '') AS regressed, "
    f"count(*) FILTER (WHERE {{failed}}) AS failed_cases FROM ({CASES}) AS cases GROUP BY 1, 2".replace(
        "{failed}", f"verdict NOT IN ({WELL}) AND expected = ''"
    ),
}


def create_views(connection: psycopg.Connection) -> None:
    """Create the views, or replace those that are there."""
    connection.execute(sql.SQL(INDEX))
    for name, query in VIEWS.items():
        words = sql.SQL("CREATE OR REPLACE VIEW {} AS ").format(sql.Identifier(name))
        connection.execute(words + sql.SQL(query))
