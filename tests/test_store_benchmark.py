"""The benchmark of the store answers every question, at a size that takes no time."""

from __future__ import annotations

import os
from pathlib import Path

from tests import store_benchmark


def test_a_tiny_benchmark_answers_every_question(tmp_path: Path, capfd, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    words = ["120", "--cases", "40", "--reframe", "80", "--folder", str(tmp_path)]
    store_benchmark.main(words)
    lines = capfd.readouterr().out.splitlines()
    assert lines[0].startswith("3 nights of 40 cases: ")
    table = [line for line in lines if line.startswith(("store", "ReFrame"))]
    counted = [int(line.split(" rows")[0].split()[-1].replace(",", "")) for line in table]
    assert counted == [3, 3, 120, 120, 80, 40, 80, 80]
    assert os.listdir(tmp_path) == []
