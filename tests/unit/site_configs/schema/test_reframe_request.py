"""What a session asks of ReFrame is one file, written once and taken on trust by nobody."""

import json
import re
import tempfile
from dataclasses import asdict
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from site_configs.schema import reframe_request
from site_configs.schema.variables import SESSION
from tests.support.request import ask

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
WHOLE = reframe_request.ReframeRequest(shell={})


@given(
    asked_for=st.builds(
        reframe_request.ReframeRequest,
        choice=st.dictionaries(TEXT, st.integers(-9, 9) | st.lists(TEXT) | st.booleans()),
        set_env=st.dictionaries(TEXT, st.dictionaries(TEXT, TEXT)),
        shell=st.dictionaries(TEXT, TEXT),
        oversubscribe=st.booleans(),
        only_looking=st.booleans(),
        built=st.booleans(),
        references=st.lists(TEXT),
        spack=TEXT,
    )
)
def test_what_is_written_is_read(asked_for: reframe_request.ReframeRequest):
    with tempfile.TemporaryDirectory() as folder:
        reframe_request.write_request(Path(folder), asked_for)
        assert reframe_request.read_request(Path(folder)) == asked_for


def test_without_a_session_the_defaults_hold(monkeypatch):
    monkeypatch.delenv(SESSION, raising=False)
    assert reframe_request.current_request() == reframe_request.ReframeRequest()
    assert reframe_request.current_request().shell is None  # that of the process itself


def test_a_session_without_a_request_is_refused(monkeypatch, tmp_path: Path):
    """Else everything would be measured in the place of what was chosen."""
    monkeypatch.setenv(SESSION, str(tmp_path))
    with pytest.raises(ValueError, match=rf"^{tmp_path}/request.json: No such file.*; let ./plumb"):
        reframe_request.current_request()


def test_the_file_is_read_once(monkeypatch, tmp_path: Path):
    ask(monkeypatch, tmp_path, oversubscribe=True)
    assert reframe_request.current_request().oversubscribe
    (tmp_path / reframe_request.FILE).unlink()
    assert reframe_request.current_request() is reframe_request.current_request()


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"sped": 1}, "sped: is not a known key"),
        ({"choice": []}, "choice: Expected `object`, got `array`"),
        ({"set_env": {"mpich": "A=1"}}, "set_env.mpich: Expected `object`, got `str`"),
        ({"set_env": {"mpich": {"A": 1}}}, "set_env.mpich.A: Expected `str`, got `int`"),
        ({"shell": None}, "shell: is null"),
        ({"shell": {"UCX_TLS": ["tcp"]}}, "shell.UCX_TLS: Expected `str`, got `array`"),
        ({"oversubscribe": 1}, "oversubscribe: Expected `bool`, got `int`"),
        ({"only_looking": "0"}, "only_looking: Expected `bool`, got `str`"),
        ({"references": "a:b"}, "references: Expected `array`, got `str`"),
        ({"references": [1]}, "references[0]: Expected `str`, got `int`"),
        ({"spack": None}, "spack: Expected `str`, got `null`"),
    ],
)
def test_a_wrong_file_is_refused_with_its_name_and_the_key(tmp_path: Path, change, complaint):
    (tmp_path / reframe_request.FILE).write_text(json.dumps({**asdict(WHOLE), **change}))
    with pytest.raises(ValueError, match=re.escape(f"{tmp_path}/request.json: {complaint}; ")):
        reframe_request.read_request(tmp_path)


@pytest.mark.parametrize("key", list(asdict(WHOLE)))
def test_a_key_that_is_missing_is_named(tmp_path: Path, key: str):
    data = {name: value for name, value in asdict(WHOLE).items() if name != key}
    (tmp_path / reframe_request.FILE).write_text(json.dumps(data))
    with pytest.raises(ValueError, match=f"request.json: {key}: is missing; "):
        reframe_request.read_request(tmp_path)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"choice": {}, "choice": {}}'])
def test_what_is_no_object_is_refused(tmp_path: Path, text: str):
    (tmp_path / reframe_request.FILE).write_text(text)
    with pytest.raises(ValueError, match=r"request\.json: .*; let ./plumbline start ReFrame"):
        reframe_request.read_request(tmp_path)
