"""The machine as the kernel shows it, from made-up trees of /sys and /proc."""

import json
import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from postprocess.references.comparability import find_missing_fact, join_conditions, list_differences
from site_configs.topology import machine
from site_configs.topology.machine import (
    LIMITS,
    Cache,
    compute_flush_bytes,
    count_cores_and_sockets,
    count_threads_per_core,
    describe_limits,
    describe_own_limits,
    measure_flush_seconds,
    parse_cache_bytes,
    parse_cpu_list,
    read_caches,
    read_cpu_model,
    read_limits,
    read_machine,
    read_quota_cpus,
    write_limits_command,
)
from tests.support.factories.processor import SAMPLES


def write(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text + "\n")


def add_cpu(root: Path, number: int, socket: int, siblings: str) -> None:
    where = root / f"cpu{number}" / "topology"
    write(where / "physical_package_id", str(socket))
    write(where / "thread_siblings_list", siblings)


def add_cache(cpu: Path, index: int, *facts: str) -> None:
    """Level, type, size and CPUs that share it; fewer where the kernel tells less."""
    names = ("level", "type", "size", "shared_cpu_list")
    for name, fact in zip(names, facts, strict=False):
        write(cpu / "cache" / f"index{index}" / name, fact)


@given(st.sets(st.integers(0, 500)))
def test_any_list_of_cpus_is_read(cpus: set[int]):
    """Written as the kernel writes it: neighbours as ranges."""
    parts, ordered = [], sorted(cpus)
    while ordered:
        length = next((n for n in range(1, len(ordered)) if ordered[n] != ordered[0] + n), len(ordered))
        first, last = ordered[0], ordered[length - 1]
        parts.append(str(first) if first == last else f"{first}-{last}")
        ordered = ordered[length:]
    assert parse_cpu_list(",".join(parts) + "\n") == cpus


@pytest.mark.parametrize(
    ("text", "expected"), [("32K\n", 32768), ("1024K", 2**20), ("2M", 2**21), ("1G", 2**30), ("512", 512)]
)
def test_the_size_of_a_cache(text: str, expected: int):
    assert parse_cache_bytes(text) == expected


@pytest.mark.parametrize("text", ["", "K", "12T", "large"])
def test_what_is_no_size_is_refused(text: str):
    with pytest.raises(ValueError, match="invalid literal"):
        parse_cache_bytes(text)


def test_threads_of_a_core_are_those_that_may_be_used(tmp_path: Path):
    for cpu in range(4):
        add_cpu(tmp_path, cpu, 0, f"{cpu % 2},{cpu % 2 + 2}")
    assert count_threads_per_core({0, 1, 2, 3}, tmp_path) == 2
    assert count_threads_per_core({0, 1, 2}, tmp_path) == 1  # of core 1 there is one
    assert count_threads_per_core({7}, tmp_path) == 1


def test_caches_as_one_cpu_sees_them(tmp_path: Path):
    add_cache(tmp_path, 0, "1", "Data", "32K", "0,8")
    add_cache(tmp_path, 1, "1", "Instruction", "32K", "0,8")
    add_cache(tmp_path, 2, "2", "Unified", "1024K", "0,8")
    add_cache(tmp_path, 3, "3", "Unified", "32M", "0-7,8-15")
    assert read_caches(tmp_path) == (
        Cache(1, "Data", 32768, 2),
        Cache(2, "Unified", 2**20, 2),
        Cache(3, "Unified", 2**25, 16),
    )


@pytest.mark.parametrize("known", [0, 1, 2, 3])
def test_a_cache_of_which_the_kernel_tells_half_is_left_out(tmp_path: Path, known: int):
    """Some ARM machines list caches without their sizes."""
    add_cache(tmp_path, 0, *("1", "Data", "32K", "0")[:known])
    (tmp_path / "cache" / "index0").mkdir(parents=True, exist_ok=True)
    add_cache(tmp_path, 1, "2", "Unified", "1024K", "0")
    assert read_caches(tmp_path) == (Cache(2, "Unified", 2**20, 1),)


def test_a_cache_of_odd_size_is_left_out(tmp_path: Path):
    add_cache(tmp_path, 0, "1", "Data", "", "0")
    add_cache(tmp_path, 1, "1", "Data", "unknown", "0")
    assert read_caches(tmp_path) == ()


def test_two_threads_are_one_core(tmp_path: Path):
    for number in range(4):
        add_cpu(tmp_path, number, number % 2, f"{number},{number + 4}")
        add_cpu(tmp_path, number + 4, number % 2, f"{number},{number + 4}")
    assert count_cores_and_sockets(set(range(8)), tmp_path) == (4, 2)
    assert count_cores_and_sockets({0, 4}, tmp_path) == (1, 1)
    assert count_cores_and_sockets({5}, tmp_path) == (1, 1)
    assert count_cores_and_sockets({0, 2}, tmp_path) == (2, 1)


def test_where_the_kernel_is_silent_every_cpu_is_a_core(tmp_path: Path):
    assert count_cores_and_sockets({0, 1, 5}, tmp_path) == (3, 1)


def test_an_unknown_package_is_one_socket(tmp_path: Path):
    for number in range(2):
        add_cpu(tmp_path, number, -1, str(number))
    assert count_cores_and_sockets({0, 1}, tmp_path) == (2, 1)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        *((None, None), ("max 100000", None), ("200000 100000", 2), ("250000 100000", 2)),
        *(("50000 100000", 1), ("1600000 100000", 16)),
    ],
)
def test_the_quota_of_a_control_group(tmp_path: Path, text: str | None, expected: int | None):
    if text is not None:
        write(tmp_path / "cpu.max", text)
    assert read_quota_cpus(tmp_path) == expected


@pytest.mark.parametrize(
    ("groups", "files", "expected"),
    [
        # version 2: of the own group, or of one above it, the least
        ("0::/a/b", {"a/b/cpu.max": "max 100000", "a/cpu.max": "200000 100000"}, 2),
        ("0::/a/b", {"a/b/cpu.max": "300000 100000", "a/cpu.max": "200000 100000"}, 2),
        # version 1, beside version 2, under either name of its folder
        ("4:cpu,cpuacct:/j\n0::/", {"cpu/j/cpu.cfs_quota_us": "150000"}, 1),
        ("4:cpu,cpuacct:/j/s\n0::/", {"cpu,cpuacct/j/cpu.cfs_quota_us": "400000"}, 4),
        ("4:cpu:/j", {"cpu/cpu.cfs_quota_us": "100000"}, 1),
        ("4:cpu:/j", {"cpu/j/cpu.cfs_quota_us": "-1"}, None),
        ("3:cpuset:/j", {"cpuset/j/cpu.cfs_quota_us": "100000"}, None),
        ("0::/../outside", {"cpu.max": "100000 100000"}, 1),
    ],
)
def test_the_quota_of_any_group_above_counts(tmp_path, groups, files, expected):
    for name, text in files.items():
        write(tmp_path / "fs" / name, text)
        if name.endswith("cpu.cfs_quota_us"):
            write((tmp_path / "fs" / name).with_name("cpu.cfs_period_us"), "100000")
    write(tmp_path / "cgroup", groups)
    assert read_quota_cpus(tmp_path / "fs", tmp_path / "cgroup") == expected


@pytest.mark.parametrize("sample", SAMPLES)
def test_the_name_of_the_processor(sample: str, tmp_path: Path):
    """``test_mpicost_processor.py`` has the same samples."""
    text, name = SAMPLES[sample]
    path = tmp_path / "cpuinfo"
    if text is not None:
        path.write_text(text)
    assert read_cpu_model(path) == name


@pytest.mark.parametrize(("quota", "cores"), [(None, 2), (1, 1), (2, 2), (64, 2)])
def test_cores_are_those_that_this_process_may_use(tmp_path, monkeypatch, quota, cores):
    for number in range(8):
        add_cpu(tmp_path, number, 0, f"{number % 4},{number % 4 + 4}")
    add_cache(tmp_path / "cpu1", 0, "1", "Data", "48K", "1,5")
    monkeypatch.setattr(machine.os, "sched_getaffinity", lambda _: {1, 5, 6})
    monkeypatch.setattr(machine, "CPUS", tmp_path)
    monkeypatch.setattr(machine, "read_quota_cpus", lambda: quota)
    monkeypatch.setattr(
        machine, "count_cores_and_sockets", lambda cpus: count_cores_and_sockets(cpus, tmp_path)
    )
    found = read_machine()
    assert (found.cores, found.hardware_threads, found.sockets) == (cores, 3, 1)
    assert found.caches == (Cache(1, "Data", 49152, 2),)


def test_this_machine_can_be_read_and_written_down():
    found = read_machine()
    assert 1 <= found.cores <= found.hardware_threads <= os.cpu_count()
    assert found.sockets >= 1 and found.memory_bytes > 2**20
    assert json.loads(json.dumps(found.as_dict()))["cores"] == found.cores


def test_idle_and_all_ticks_are_read(tmp_path: Path):
    (tmp_path / "stat").write_text("cpu  100 0 50 800 50 0 0 0 0 0\ncpu0 1 2 3\n")
    assert machine.read_cpu_times(tmp_path / "stat") == (850, 1000)
    assert machine.read_cpu_times(tmp_path / "none") == (0, 0)


MB = 1024**2
CACHES = (Cache(1, "Data", MB // 32, 2), Cache(2, "Unified", MB, 2), Cache(3, "Unified", 32 * MB, 16))


@pytest.mark.parametrize(
    ("caches", "ranks", "expected"),
    [
        (CACHES, 1, 66 * MB),
        (CACHES, 8, 32 * MB + 2 * MB),  # spread over four last-level caches, two at each
        (CACHES, 64, 2 * MB + 4 * MB),
        (CACHES[:2], 1, 2 * MB),  # the second level is the last one
        ((), 1, 0),
    ],
)
def test_a_rank_walks_its_share_of_twice_the_caches(caches, ranks, expected):
    machine = replace(read_machine(), caches=caches, hardware_threads=64)
    assert compute_flush_bytes(machine, ranks) == expected


def test_a_walk_is_measured_once():
    assert measure_flush_seconds() == measure_flush_seconds() > 0


PLENTY = {"l": "unlimited", "v": "unlimited", "n": "1048576", "u": "63000"}


def test_a_job_script_writes_the_limits_of_its_shell(tmp_path: Path):
    path = tmp_path / "a b.limits"
    command = f"ulimit -Sl 64; ulimit -Sn 128; ulimit -Sv 3000000; {write_limits_command(path, 2)}"
    subprocess.run(["bash", "-c", command], check=True)
    said = read_limits(path)[LIMITS]
    assert said.startswith("locked memory 64 KiB, address space 3000000 KiB, open files 128, processes ")
    assert said.endswith(", CPUs of a quota 2")


def test_limits_that_no_launch_comes_near_are_alike():
    other = PLENTY | {"n": "20000", "u": "62998"}
    assert describe_limits(PLENTY) == describe_limits(other)
    assert describe_limits(PLENTY | {"n": "1024"}) != describe_limits(PLENTY)
    assert describe_limits(PLENTY | {"l": "8192"}) != describe_limits(PLENTY)
    assert describe_own_limits(None).startswith("locked memory ")


@pytest.mark.parametrize("text", [None, "", "l 64\nv", "l -1\n", "x 3\n", "l \n"])
def test_what_is_not_understood_is_not_told(tmp_path: Path, text: str | None):
    if text is not None:
        (tmp_path / "l").write_text(text)
    assert read_limits(tmp_path / "l") == {}


def test_other_limits_are_other_conditions_and_older_references_tell_none():
    ours, theirs = ({LIMITS: describe_limits(PLENTY | {"l": each})} for each in ("64", "8192"))
    assert [difference.name for difference in list_differences(ours, theirs)] == [LIMITS]
    assert list_differences(ours, ours) == []
    assert list_differences(ours, {}) == [] and find_missing_fact(ours, {}) == ""
    assert join_conditions({"caches": "x"}, {"caches": "x", **ours})[LIMITS] == ours[LIMITS]
    with pytest.raises(ValueError, match=LIMITS):
        join_conditions(ours, theirs)
