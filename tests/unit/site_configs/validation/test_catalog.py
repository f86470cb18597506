"""Whose host this is, as the site files say."""

from __future__ import annotations

from pathlib import Path

import pytest

from site_configs.validation.catalog import find_sites_for_host, read_host_patterns

TEXT = "site_configuration = site('x', hostnames={})\n"


@pytest.mark.parametrize(
    ("hostnames", "host", "found"),
    [
        ('["login1"]', "login1", True),
        ('["login1"]', "login1.cluster", True),  # as ReFrame matches: from the start
        ('["login1"]', "mylogin1", False),
        (r'["uan\\d+", "head"]', "head", True),
        ('["("]', "(", False),
        ("[1, None]", "1", False),
        ("NAMES", "NAMES", False),
        ("[]", "", False),
    ],
)
def test_a_site_is_for_the_hosts_that_it_names(tmp_path: Path, hostnames, host, found):
    (tmp_path / "mine.py").write_text(TEXT.format(hostnames))
    (tmp_path / "broken.py").write_text("hostnames=[")
    (tmp_path / "binary.py").write_bytes(b"\xff\xfe\x00")
    assert find_sites_for_host(tmp_path, host) == (["mine"] if found else [])


def test_a_file_that_is_not_there_is_for_no_host(tmp_path: Path):
    assert list(read_host_patterns(tmp_path / "none.py")) == []
