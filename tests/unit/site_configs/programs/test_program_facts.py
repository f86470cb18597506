"""What an executable tells of itself without being started."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs.programs.program_facts import ExecutableFacts, parse_facts, read_facts

ONEAPI = b"Intel(R) oneAPI DPC++/C++ Compiler 2026.0.0 (2026.0.0.20260331)"
GCC = b"GCC: (Debian 12.2.0-14+deb12u1) 12.2.0"
PRODUCER = b"GNU C17 12.2.0 -mtune=generic -g -O0 -fPIC"


@pytest.mark.parametrize(
    ("texts", "facts"),
    [
        ([], ExecutableFacts()),
        (
            [b"Intel(R) MPI Benchmarks 2021.11", GCC, ONEAPI],
            ExecutableFacts("2021.11", "Intel(R) oneAPI DPC++/C++ Compiler 2026.0.0"),
        ),
        ([b"#    Intel(R) MPI Benchmarks %s, MPI-1 part", GCC], ExecutableFacts(compiler="gcc 12.2.0")),
        ([b"# OSU MPI%s Latency Test v7.4\n", GCC], ExecutableFacts("7.4", "gcc 12.2.0")),
        ([b"# OSU MPI Multiple Bandwidth / Message Rate Test v5.6.3\n"], ExecutableFacts("5.6.3")),
        ([PRODUCER, GCC], ExecutableFacts("unknown", "gcc 12.2.0", "-mtune=generic -g -O0 -fPIC")),
        ([b"GNU C++14 8.5.0 -O2"], ExecutableFacts("unknown", "gcc 8.5.0", "-O2")),
        ([b"clang version 17.0.6", GCC], ExecutableFacts(compiler="clang version 17.0.6")),
    ],
)
def test_version_compiler_and_flags_are_read_where_they_are(texts, facts):
    assert parse_facts(b"\0".join([b"\x7fELF", *texts, b""])) == facts


@given(st.binary())
def test_of_any_bytes_something_is_told(data: bytes):
    assert parse_facts(data).flags


def test_a_real_program_tells_its_compiler_and_with_debug_information_its_flags(tmp_path: Path):
    source = tmp_path / "a.c"
    source.write_text('const char *name = "# OSU MPI Test v9.1\\n"; int main(void) { return 0; }\n')
    program = tmp_path / "a"
    subprocess.run(["cc", "-g", "-O1", str(source), "-o", str(program)], check=True)
    facts = read_facts(program)
    if not facts.compiler.startswith("gcc"):
        pytest.skip(f"cc is not GCC but {facts.compiler}")
    assert facts.version == "9.1"
    assert {"-g", "-O1"} <= set(facts.flags.split())


def test_a_file_that_is_not_there_tells_nothing(tmp_path: Path):
    assert read_facts(tmp_path / "none") == ExecutableFacts()
    assert read_facts(tmp_path) == ExecutableFacts()
