"""The names and types of what programs read: files, tables and records."""

import json
from dataclasses import fields
from typing import Any

from postprocess.references.decisions import COLUMNS as EXPECTED
from postprocess.references.reference_file import COLUMNS as REFERENCES
from postprocess.results.store import SCHEMA, VERSION, StoreRow
from postprocess.results.summary import SCHEMA as SUMMARY
from tests.golden.stage import Stage
from tests.unit.test_damaged_files import READERS


def play(stage: Stage) -> None:
    """Write down the columns of tables, and the keys and types of every file of JSON that is read."""
    columns = [f"store {VERSION}: {name}: {kind}" for name, kind in SCHEMA.items()]
    columns += [f"row of the store: {field.name}: {field.type}" for field in fields(StoreRow)]
    columns += [f"references: {name}" for name in REFERENCES]
    columns += [f"expected failures: {name}" for name in EXPECTED]
    columns += [f"summary: schema {SUMMARY}"]
    stage.keep("columns.txt", "".join(f"{line}\n" for line in columns))
    for name, reader in READERS.items():
        folder = stage.folder / name.replace(" ", "-").replace("'", "")
        folder.mkdir()
        content = reader.make(folder).read_bytes()
        if content.startswith(b"{"):
            lines = content.splitlines() if content.count(b"\n{") else [content]
            found = sorted({line for each in lines for line in describe(json.loads(each))})
            stage.keep(f"{folder.name}.txt", "".join(f"{line}\n" for line in found))


def describe(value: Any, where: str = "") -> list[str]:
    """Describe a value of JSON: the type at each place, of lists that of each element."""
    if isinstance(value, dict) and value:
        return [line for key, each in value.items() for line in describe(each, f"{where}.{key}")]
    if isinstance(value, list) and value:
        return [line for each in value for line in describe(each, f"{where}[]")]
    return [f"{where}: {type(value).__name__}"]
