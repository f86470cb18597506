"""One line out of all that Spack says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from spack_envs import errors
from spack_envs.errors import FIX, SourceError, SpackEnvironmentError, extract_spack_error

TARBALL = """==> Installing osu-micro-benchmarks-7.4-q2i75n3 [7/7]
==> Error: FetchError: All fetchers failed for spack-stage-osu-micro-benchmarks-7.4-q2i75n3
        https://h.example/osu-7.4.tar.gz: DetailedURLError: GET https://h.example/osu-7.4.tar.gz \
errored with: Name or service not known
"""
MIRROR_FIRST = """==> Error: FetchError: All fetchers failed for spack-stage-osu-micro-benchmarks-7.4-q2i75n3
        file:///m/_source-cache/archive/1e/1edd.tar.gz: FileNotFoundError: not there
        https://h.example/osu-7.4.tar.gz: DetailedURLError: GET https://h.example/osu-7.4.tar.gz \
errored with: timed out
"""
REPOSITORY = """fatal: unable to access 'https://h.example/imb.git/': Could not resolve host: h.example
==> Error: FetchError: All fetchers failed for spack-stage-intel-mpi-benchmarks-2021.11-nutpbxd
        [git] https://h.example/imb.git at commit 1a7cada: ProcessError: Command exited with status 128:
    '/usr/bin/git' 'clone' '--quiet' 'https://h.example/imb.git'
"""
CHECKSUM = """==> Error: ChecksumError: sha256 checksum failed for /w/stage/osu-7.4.tar.gz
    Expected 1edd but got dda5. File size = 970126 bytes.
"""
SOLVER = """==> Error: failed to concretize `mpicost@main`, `osu-micro-benchmarks@9` for the following reasons:
     1. Cannot satisfy 'osu-micro-benchmarks@9' 1(7.5.2)
     2. something that follows from it
"""
COMPILER = """==> Error: ProcessError: Command exited with status 2:
    '/usr/bin/make' '-j2'
1 error found in build log:
     12    gcc -c a.c
  >> 13    a.c:3:2: error: #error broken
See build log for details:
  /w/stage/spack-stage-mpicost/spack-build-out.txt
"""
FOLDED = """==> Error: ProcessError: Command exited with status 1:
    'ninja' '-j2'
2 errors found in build log:
     36    [14/55] gcc -c a long
            command
  >> 37    FAILED: [code=1] main.c.o
  >> 39    /w/a/long/path/to/suite/src/main.c:1:2: er
           ror: #error broken
     40        1 | #error broken
See build log for details:
  /w/stage/spack-stage-mpicost/spack-build-out.txt
"""


NOT_FETCHED = "cannot be fetched from https://h.example"
ALL = "(all of it: /w/stage/spack-stage-mpicost/spack-build-out.txt)"


@pytest.mark.parametrize(
    ("output", "line"),
    [
        (TARBALL, f"{NOT_FETCHED}/osu-7.4.tar.gz (Name or service not known): {FIX}"),
        (REPOSITORY, f"{NOT_FETCHED}/imb.git (Could not resolve host: h.example): {FIX}"),
        (MIRROR_FIRST, f"{NOT_FETCHED}/osu-7.4.tar.gz (timed out): {FIX}"),
        (
            CHECKSUM,
            "ChecksumError: sha256 checksum failed for /w/stage/osu-7.4.tar.gz: "
            "Expected 1edd but got dda5. File size = 970126 bytes.",
        ),
        (SOLVER, "cannot be solved: Cannot satisfy 'osu-micro-benchmarks@9' 1(7.5.2)"),
        (COMPILER, f"ProcessError: Command exited with status 2: a.c:3:2: error: #error broken {ALL}"),
        (
            FOLDED,
            "ProcessError: Command exited with status 1: "
            f"/w/a/long/path/to/suite/src/main.c:1:2: error: #error broken {ALL}",
        ),
        ("==> a\nIllegal instruction\n\n", "Illegal instruction"),
        ("", "Spack ends without a word"),
    ],
)
def test_reason_is_one_line_with_the_fix(output, line):
    assert str(extract_spack_error(output)) == line


@pytest.mark.parametrize(
    ("output", "kind"),
    [
        *((each, SourceError) for each in (TARBALL, REPOSITORY, MIRROR_FIRST)),
        *((each, SpackEnvironmentError) for each in (CHECKSUM, SOLVER, COMPILER, "")),
    ],
)
def test_only_what_cannot_be_fetched_has_no_source(output, kind, monkeypatch):
    monkeypatch.setattr(errors, "describe_fetch_failure", lambda *_: "another sentence")
    monkeypatch.setattr(errors, "describe_build_failure", lambda *_: "cannot be fetched from here")
    assert type(extract_spack_error(output)) is kind


@given(st.text(), st.sampled_from([TARBALL, REPOSITORY, CHECKSUM, SOLVER, COMPILER, ""]))
def test_whatever_spack_says_is_one_line(noise, output):
    said = str(extract_spack_error(noise + output))
    assert said
    assert len(said.splitlines()) == 1
