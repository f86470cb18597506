"""The benchmark of the store answers every question, at a size that takes no time."""

import os
from pathlib import Path

from postprocess.analyses.drift import detect_trends
from tests.performance import store_benchmark
from tests.support.factories.store import Site


def test_a_tiny_benchmark_answers_every_question(tmp_path: Path, capfd, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["120", "--cases", "40", "--reframe", "80", "--folder", str(tmp_path)]
    store_benchmark.main(words)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("3 nights of 40 cases: ")
    table = [line for line in lines if line.startswith(("store", "ReFrame"))]
    counted = [int(line.split(" rows")[0].split()[-1].replace(",", "")) for line in table]
    assert counted == [3, 3, 120, 120, 80, 40, 80, 80]
    assert any("drift: every case examined" in line for line in table)
    assert os.listdir(tmp_path) == []


def test_drift_is_really_looked_for(tmp_path: Path, monkeypatch):
    """In every case, not only read."""
    site, examined = Site(40), []
    for number in range(12):
        site.write(tmp_path, number)
    monkeypatch.setattr(
        store_benchmark, "detect_trends", lambda some: examined.extend(some) or detect_trends(some)
    )
    assert store_benchmark.drift(tmp_path, site, 12) == 12 * 40
    assert {each.case for each in examined} == set(site.keys())


def test_a_small_benchmark_is_of_a_small_site(monkeypatch):
    asked = []
    monkeypatch.setattr(store_benchmark, "compare", lambda _, *words: asked.extend(words))
    store_benchmark.main(["--small"])
    assert asked == [Site(500), 200 * 500, []]
