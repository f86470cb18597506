"""What people and programs read is what was recorded, to the letter."""

import pytest

from tests.golden.record import COMMAND, OUTPUTS, SCENES, compare, play, read_recorded

SHOWN = 20_000  #: characters of a difference


@pytest.mark.parametrize("scene", SCENES)
def test_outputs_are_as_recorded(scene: str) -> None:
    difference = compare(scene, read_recorded(scene), play(scene))
    told = f"{difference[:SHOWN]}\nif this is meant: {COMMAND} {scene}; then read the difference again"
    assert not difference, told


def test_no_output_is_missing_or_of_no_scene() -> None:
    assert {path.name for path in OUTPUTS.iterdir()} == set(SCENES)
    assert "(now)" in compare("usage", {}, {"empty.txt": ""})
    assert "(recorded)" in compare("usage", {"empty.txt": ""}, {})
