"""What a check must define is asked for when its class is made, and not at night."""

from collections.abc import Iterator

import pytest

from tests.support.request import made_for_a_site


@pytest.fixture(autouse=True)
def site(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    with made_for_a_site(monkeypatch):
        yield


WHOLE = {
    "program": "other",
    "site_variables": (),
    "measures_on": lambda self, part: True,
    "planned_launches": lambda self: [],
}


def check(base: type, body: dict, **more):
    """A class as a ``class`` statement makes it."""
    from reframe.core.meta import RegressionTestMeta

    namespace = RegressionTestMeta.__prepare__("Mine", (base,), **more)
    for name, value in {"__module__": __name__, **body}.items():
        namespace[name] = value
    return RegressionTestMeta("Mine", (base,), namespace, **more)


def test_a_whole_check_can_be_made_and_derived_from():
    from reframe_checks.common.base import LaunchCheck

    whole = check(LaunchCheck, WHOLE)
    assert check(whole, {}).program == "other"


@pytest.mark.parametrize("name", WHOLE)
def test_what_every_check_must_define(name: str):
    from reframe_checks.common.base import LaunchCheck

    assert name in LaunchCheck.__doc__ and name in LaunchCheck.must_define
    body = {key: value for key, value in WHOLE.items() if key != name}
    with pytest.raises(TypeError, match=rf"^check Mine: {name}: not defined; see the docstring"):
        check(LaunchCheck, body)
    check(check(LaunchCheck, body, family=True), {name: WHOLE[name]})


@pytest.mark.parametrize(
    ("family", "body", "lacking"),
    [
        ("mpicost", {}, "table"),
        ("osu_imb", {"program": "osu"}, "table, own_sizes"),
        ("osu_imb", {"table": (), "own_sizes": [8]}, "program"),
        ("mpicost", {"table": {"bcast": [8]}}, ""),
        ("osu_imb", {"program": "osu", "table": (), "own_sizes": [8]}, ""),
    ],
)
def test_what_a_family_asks_for_besides(family: str, body: dict, lacking: str):
    if family == "mpicost":
        from reframe_checks.common.mpicost import MpicostCheck as Family
    else:
        from reframe_checks.common.osu_imb import OsuImbCheck as Family
    if not lacking:
        check(Family, body)
        return
    with pytest.raises(TypeError, match=f"^check Mine: {lacking}: not defined"):
        check(Family, body)


@pytest.mark.parametrize(
    ("table", "said"),
    [
        ({"bcst": [8]}, "bcst: no routine of mpicost; enter it in"),
        ({"bcast": []}, "table: give every routine of the family a size"),
    ],
)
def test_a_table_that_nothing_can_be_measured_by_is_refused_with_the_check(table: dict, said: str):
    from reframe_checks.common.mpicost import MpicostCheck

    mine = check(MpicostCheck, {"table": table})
    with pytest.raises(ValueError, match=said):
        mine.apply_table(mine)
