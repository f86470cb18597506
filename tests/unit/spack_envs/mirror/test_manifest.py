"""The manifest of a mirror: nothing that it does not vouch for passes."""

import dataclasses
import json
import os
import subprocess
import sys
from pathlib import Path
from string import ascii_letters, digits

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from spack_envs.mirror import manifest
from tests.support.factories.mirror import REPLACED, make_mirror, write
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT

WHEEL = "wheels/a-1-py3-none-any.whl"

sums = st.integers(0, 2**256 - 1).map("{:064x}".format)
names = st.text(f"{ascii_letters}{digits}_.+-", min_size=1, max_size=21).filter(lambda name: name[0] != ".")
paths = st.lists(names, min_size=1, max_size=4).map("/".join).filter(lambda path: path != manifest.NAME)
texts = st.text(max_size=40)
packages = st.from_regex(r"[a-z][a-z0-9]{0,5}(-[a-z0-9]{1,5}){0,2}", fullmatch=True)
versions = st.from_regex(r"[0-9]{1,2}(\.[0-9]{1,2}){0,2}", fullmatch=True)
sources = st.builds(manifest.ReplacedSource, packages, versions, texts, sums, sums)


@st.composite
def manifests(draw) -> manifest.Manifest:
    """Any manifest that can be."""
    files = draw(
        st.lists(
            st.builds(manifest.MirrorFile, paths, st.integers(0, 10**12), sums),
            max_size=5,
            unique_by=lambda f: f.path,
        )
    )
    places = [file.path for file in files]
    kinds = ("spack", "spack-packages") if places else ()
    return manifest.Manifest(
        *draw(st.tuples(names, names)),
        releases=tuple(
            manifest.ArchivedRelease(kind, draw(texts), draw(texts), draw(st.sampled_from(places)))
            for kind in kinds
        ),
        replaced=tuple(draw(st.lists(sources, max_size=3))),
        missing=tuple(draw(st.lists(st.builds(manifest.MissingPart, texts, texts), max_size=5))),
        files=tuple(files),
    )


@given(manifests())
def test_what_is_written_is_read(contents: manifest.Manifest):
    assert manifest.decode_manifest(manifest.encode_manifest(contents)) == contents


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@given(manifests(), st.data())
def test_any_field_that_is_something_else_is_refused_or_is_read_as_it_stands(contents, data):
    """No manifest that was tampered with raises anything but ValueError, or is read as the old one."""
    values = json.loads(manifest.encode_manifest(contents))
    key = data.draw(st.sampled_from(sorted(values)))
    values[key] = data.draw(json_values)
    try:
        found = manifest.decode_manifest(json.dumps(values).encode())
    except ValueError as error:
        assert "\n" not in str(error)
    else:
        assert json.loads(manifest.encode_manifest(found)) == values


@given(st.binary(max_size=200))
@example(b"[" * 100_000)
@example(b"\xff")
@example(b'{"schema": 1, "schema": 1}')
@example(b'{"schema": true}')
@example(b"null")
def test_no_bytes_raise_anything_but_value_error(data: bytes):
    with pytest.raises(ValueError):
        manifest.decode_manifest(data)


@pytest.mark.parametrize(
    "path",
    [
        *("", ".", "..", "/etc/passwd", "../x", "wheels/../../x", "a//b", "./a", "a/", "a\\b"),
        *("a\nb", "mirror.json"),
    ],
)
def test_a_path_that_leaves_the_mirror_is_refused(path: str):
    contents = manifest.Manifest("3.11", "linux-x86_64", files=(manifest.MirrorFile(path, 1, "0" * 64),))
    with pytest.raises(ValueError, match=r"^files: "):
        manifest.decode_manifest(manifest.encode_manifest(contents))


@pytest.mark.parametrize(
    "changes",
    [
        {"files": (manifest.MirrorFile("a", 1, "0" * 64), manifest.MirrorFile("a", 1, "0" * 64))},
        {"files": (manifest.MirrorFile("a", -1, "0" * 64),)},
        {"files": (manifest.MirrorFile("a", 1, "0" * 63),)},
        {"files": (manifest.MirrorFile("a", 1, "G" * 64),)},
        {"releases": (manifest.ArchivedRelease("spack", "v1", "c", "not-there"),)},
        {"replaced": (dataclasses.replace(REPLACED, package='x"; import os'),)},
        {"replaced": (dataclasses.replace(REPLACED, version="7'"),)},
        {"replaced": (dataclasses.replace(REPLACED, sha256="7"),)},
        {"python": ""},
    ],
)
def test_what_cannot_be_is_refused(changes):
    contents = dataclasses.replace(manifest.Manifest("3.11", "linux-x86_64"), **changes)
    with pytest.raises(ValueError):
        manifest.decode_manifest(manifest.encode_manifest(contents))


def swap(path: Path) -> None:
    """Other bytes, as many."""
    path.write_bytes(bytes(byte ^ 1 for byte in path.read_bytes()))


def link_away(path: Path) -> None:
    """The same bytes by a link, which may lead anywhere."""
    copy = path.parent.parent.parent / "copy"
    path.rename(copy)
    path.symlink_to(copy)


@plants("builds", "changed, longer, empty, gone, or a link", "a file of a mirror", "", 2,
        "./plumbline mirror create mends it")  # fmt: skip
@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (swap, "is damaged: is not what mirror.json says"),
        (lambda path: path.write_bytes(path.read_bytes() + b"x"), "is damaged: has 8 bytes, not 7"),
        (lambda path: path.write_bytes(b""), "is damaged: has 0 bytes"),
        (Path.unlink, "is missing"),
        (link_away, "is not a plain file"),
    ],
)
def test_damage_is_one_line_with_the_file_and_the_fix(tmp_path, damage, words: str, declared):
    folder = tmp_path / "mirror"
    contents = make_mirror(folder)
    damage(folder / WHEEL)
    with declared.raises(manifest.MirrorError) as refused:
        manifest.verify_files(folder, contents)
    line = str(refused.value)
    assert line.startswith(f"{folder / WHEEL}: {words}")
    assert "./plumbline mirror create mends it" in line and "\n" not in line
    manifest.verify_files(folder, contents, "sources/")  # of which nothing is damaged


@plants("security", "a file or a link that the manifest does not name", "a mirror", "", 2,
        "evil-1-py3-none-any.whl: is not in mirror.json; remove")  # fmt: skip
@pytest.mark.parametrize("kind", ["file", "link", "link to a folder"])
def test_what_the_manifest_does_not_name_is_foreign(tmp_path: Path, kind: str, declared: Declared):
    folder = tmp_path / "mirror"
    contents = make_mirror(folder)
    foreign = folder / "wheels" / "evil-1-py3-none-any.whl"
    if kind == "file":
        foreign.write_text("")
    else:
        foreign.symlink_to(tmp_path if kind == "link to a folder" else folder / WHEEL)
    with declared.raises(manifest.MirrorError):
        manifest.verify_files(folder, contents, "wheels/")


@plants("builds", "four faults at once", "a mirror", "", 2,
        "(and 3 more; ./plumbline mirror check)")  # fmt: skip
def test_of_many_faults_one_is_named_and_the_others_counted(tmp_path: Path, declared: Declared):
    contents = make_mirror(tmp_path)
    for file in contents.files:
        (tmp_path / file.path).unlink()
    with declared.raises(manifest.MirrorError, match=r"\(and 3 more; ./plumbline mirror check\)$"):
        manifest.verify_files(tmp_path, contents)


@plants("builds", "a folder that is none, or not there", "`setup --mirror`", "", 2,
        "…")  # fmt: skip
def test_what_is_no_mirror_is_one_line(tmp_path: Path, declared: Declared):
    (tmp_path / "file").write_text("")
    for folder, words in (
        (tmp_path / "nowhere", "is not a mirror (it has no mirror.json); ./plumbline mirror create"),
        (tmp_path, "is not a mirror"),
        (tmp_path / "file", "is not a directory"),
    ):
        with declared.raises(manifest.MirrorError) as refused:
            manifest.read_manifest(folder)
        assert str(refused.value).startswith(f"{folder}: {words}")


@plants("builds", "cut off", "the manifest of a mirror", "", 2, "mirror.json: …makes it anew")
def test_a_manifest_that_is_cut_off_is_one_line(tmp_path: Path, declared: Declared):
    make_mirror(tmp_path)
    whole = (tmp_path / manifest.NAME).read_bytes()
    for length in range(0, len(whole) - 2, 97):
        (tmp_path / manifest.NAME).write_bytes(whole[:length])
        with declared.raises(manifest.MirrorError, match=r"mirror.json: .*makes it anew$"):
            manifest.read_manifest(tmp_path)


@plants("builds", "written by another version", "the manifest of a mirror", "", 2,
        "schema: is 2, and this Plumbline knows 1")  # fmt: skip
def test_a_manifest_of_another_schema_is_not_guessed_at(tmp_path: Path, declared: Declared):
    (tmp_path / manifest.NAME).write_text('{"schema": 2}')
    with declared.raises(manifest.MirrorError):
        manifest.read_manifest(tmp_path)


@plants("builds", "wheels for another Python", "a mirror", "", 2,
        "wheels are for Python 3.99 on …, and this is 3.")  # fmt: skip
def test_wheels_for_another_python_are_refused(tmp_path: Path, declared: Declared):
    make_mirror(tmp_path)
    contents = write(tmp_path, (WHEEL,), releases=(), python="3.99")
    with declared.raises(manifest.MirrorError, match=r"wheels are for Python 3\.99 on .*, and this is 3\.\d"):
        manifest.check_python(tmp_path, contents)


def test_the_front_door_can_read_it_before_any_package_is_installed():
    program = "import spack_envs.mirror.manifest"
    isolated = [sys.executable, "-S", "-c", f"import sys; sys.path.insert(0, {str(ROOT)!r}); {program}"]
    subprocess.run(isolated, check=True, env={**os.environ, "PYTHONPATH": ""})
