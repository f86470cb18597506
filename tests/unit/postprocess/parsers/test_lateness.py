"""What a launch tells of who was held up: read whole, or refused."""

import copy
from typing import Any

import pytest

from postprocess.base.strict_json import JsonObject
from postprocess.parsers.lateness import list_partners, parse_lateness

RUN = JsonObject({"processes": 1, "hosts": [{"name": "n1"}], "seed": 7})
RANK = {"voluntary": 0, "involuntary": 1, "faults": 2, "quantum": 1e-6, "span": 0.04, "lost": 0.004}
RANK |= {"longest": 0.001, "waited": 0.1, "interrupts": 9, "detours": [[0.01, 0.001], [0.02, 0.001]]}
GOOD: dict[str, Any] = {"watched": 2.0, "ranks": [RANK], "reach": [[1e-6, 3e-6]]}


def parse(told: Any) -> Any:
    return parse_lateness(JsonObject({"lateness": told}), RUN)


def test_what_is_right_is_read() -> None:
    told = parse(GOOD)
    assert told.ranks[0].detours == ((0.01, 0.001), (0.02, 0.001))
    assert told.reach == ((1e-6, 3e-6),)
    assert told.partners == ((),)
    assert parse_lateness(JsonObject({}), RUN) is None  # an older suite
    assert parse({"watched": 0.001}).ranks == ()


@pytest.mark.parametrize(
    ("key", "value"),
    [
        *(("lost", 0.05), ("lost", 0.0), ("quantum", 0), ("span", -1), ("voluntary", -1), ("waited", "1")),
        *(
            ("detours", []),
            ("detours", [[0.02, 1], [0.01, 1]]),
            ("detours", [[1]]),
            ("detours", [[0.1, 1]] * 13),
        ),
        *(("holds", [[1, 0]]), ("holds", 3)),
    ],
)
def test_a_rank_that_cannot_be_true_is_refused(key: str, value: Any) -> None:
    damaged = copy.deepcopy(GOOD)
    damaged["ranks"][0][key] = value
    with pytest.raises(ValueError, match=r"^lateness\.ranks\."):
        parse(damaged)


@pytest.mark.parametrize("change", [{"ranks": [RANK, RANK]}, {"ranks": 1}, {"reach": []}, {"reach": [[1, 0]]}])
def test_all_ranks_and_hosts_are_told(change: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"^lateness\."):
        parse(GOOD | change)


@pytest.mark.parametrize("hosts", [4, 5, 17, 512])
def test_who_met_whom_is_told_of_both(hosts: int) -> None:
    partners = list_partners(2**64 - 5, hosts)
    assert len(partners) == hosts
    for host, met in enumerate(partners):
        assert 0 < len(met) <= 9 and host not in met
        assert all(partners[each].count(host) == met.count(each) for each in met)
