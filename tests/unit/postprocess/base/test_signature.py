"""What a manifest says of a folder of strangers."""

from postprocess.base import signature
from postprocess.base.signature import MANIFEST, Change, compare_manifest, format_manifest


class NeverSearched(list):
    """A list in which nothing is looked up: of a million files that would take days."""

    def __contains__(self, _: object) -> bool:
        raise AssertionError("searched from its beginning for each name")


def test_the_files_of_an_archive_are_compared_in_one_pass(tmp_path, monkeypatch):
    for name in "abc":
        (tmp_path / name).write_text(name)
    (tmp_path / MANIFEST).write_text(format_manifest(tmp_path))
    (tmp_path / "b").unlink()
    (tmp_path / "c").write_text("other")
    (tmp_path / "d").touch()
    found = signature.list_sealed_files(tmp_path)
    monkeypatch.setattr(signature, "list_sealed_files", lambda _: NeverSearched(found))
    expected = {"b": Change.MISSING, "c": Change.CHANGED, "d": Change.ADDED}
    assert dict(compare_manifest(tmp_path)) == expected
