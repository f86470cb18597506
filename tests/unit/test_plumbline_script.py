"""The script at the root, in a clone of its own: a few packages in the place of the many, no network."""

import ast
import hashlib
import os
import runpy
import shutil
import signal
import subprocess
import sys
import zipfile
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from spack_envs.mirror import manifest
from spack_envs.mirror.manifest import NAME, Manifest, encode_manifest
from tests.support.faults import Declared, plants
from tests.support.paths import ROOT
from tests.support.shared_files import make_once

OLD = ("python3.5", "python3.6", "python3.7", "python3.8", "python3.9")
SETTING_UP = "plumbline: setting up Python packages in "


class IsolatedFlags:
    """The flags of an isolated Python: the script would start itself again in another."""

    isolated = 1

    def __getattr__(self, name: str) -> Any:
        return getattr(FLAGS, name)


FLAGS = sys.flags
COMMAND_LINE = """
import json, sys
def main(root, work):
    print(json.dumps([root, work, sys.argv[1:], sys.prefix]))
    return 7
"""


class Clone:
    """A clone with the script, two lock files and a command line that shows what it was given."""

    def __init__(self, directory: Path) -> None:
        self.root, self.home, self.index = (directory / name for name in ("clone", "home", "index"))
        self.index.mkdir()
        (self.root / "postprocess" / "base").mkdir(parents=True)
        shutil.copy(ROOT / "plumbline", self.root)
        (self.root / "spack_envs" / "mirror").mkdir(parents=True)
        shutil.copy(ROOT / "spack_envs/mirror/manifest.py", self.root / "spack_envs/mirror")
        for name in ("errors", "files", "os_errors", "sanitize", "standard_streams"):
            shutil.copy(ROOT / f"postprocess/base/{name}.py", self.root / "postprocess/base")
        (self.root / "postprocess" / "main.py").write_text(COMMAND_LINE)
        self.lock("requirements.lock", "sample_a")
        self.lock("requirements-test.lock", "sample_b")

    @property
    def venv(self) -> Path:
        return self.home / "venv"

    def lock(self, name: str, package: str) -> None:
        """A lock file that wants one package, and the package in the index."""
        wheel = self.index / f"{package}-1-py3-none-any.whl"
        with zipfile.ZipFile(wheel, "w") as archive:
            about = f"{package}-1.dist-info"
            archive.writestr(f"{package}.py", "")
            archive.writestr(f"{about}/METADATA", f"Metadata-Version: 2.1\nName: {package}\nVersion: 1\n")
            kind = "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
            archive.writestr(f"{about}/WHEEL", kind)
            archive.writestr(f"{about}/RECORD", "")
        digest = hashlib.sha256(wheel.read_bytes()).hexdigest()
        (self.root / name).write_text(f"{package}==1 --hash=sha256:{digest}\n")

    def have_pip(self) -> None:
        """Bring a virtual environment as one that was interrupted leaves it: the script has to complete it.

        Where it is made anew, most of the time goes to pip, which ``venv`` brings.
        """
        made = make_once(
            "venv", lambda path: subprocess.run([sys.executable, "-I", "-m", "venv", path], check=True)
        )
        shutil.copytree(made, self.venv, symlinks=True)
        for program in self.venv.glob("bin/pip*"):
            program.write_text(program.read_text().replace(f"{made}/", f"{self.venv}/"))

    def environment(self, **more: str) -> dict[str, str]:
        kept = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("PIP_", "PYTHON", "PLUMBLINE_", "VIRTUAL_ENV"))
        }
        own = {
            "HOME": str(self.home),
            "PLUMBLINE_HOME": str(self.home),
            "PIP_CONFIG_FILE": os.devnull,
            "PIP_NO_CACHE_DIR": "1",
            "PIP_NO_INDEX": "1",
            "PIP_FIND_LINKS": str(self.index),
        }
        return kept | own | more

    def start(self, *words: str, python: str = sys.executable, **more: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [python, str(self.root / "plumbline"), *words],
            env=self.environment(**more),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )

    def run(self, *words: str, **more: str) -> tuple[int, str, str]:
        """Exit status, output and errors."""
        process = self.start(*words, **more)
        output, errors = process.communicate()
        return process.returncode, output, errors


@pytest.fixture
def clone(tmp_path: Path) -> Clone:
    return Clone(tmp_path)


def handed_over(ended: tuple[int, str, str]) -> tuple[bool, list[Any]]:
    """Whether packages were set up, and what the command line was given."""
    status, output, errors = ended
    assert (status, errors) == (7, "")
    lines = output.splitlines()
    return lines[0].startswith(SETTING_UP), ast.literal_eval(lines[-1])


def refused(ended: tuple[int, str, str]) -> str:
    """The one line of a front door that stays shut."""
    status, _, errors = ended
    assert status == 2
    assert errors.startswith("plumbline: ")
    assert errors.count("\n") == 1
    return errors.removeprefix("plumbline: ").rstrip("\n")


# With a virtual environment that is really made.


@pytest.mark.long
def test_packages_are_set_up_once_and_what_is_missing_is_made_good(clone: Clone):
    """Two at once, where the Python of an earlier set-up is gone; by its own Python; with other lock files."""
    python = clone.venv / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.symlink_to(clone.home / "a-python-that-was-removed")

    foreign = clone.home / "foreign"
    foreign.mkdir()
    for name in ("json", "statistics", "subprocess", "time", "sample_a"):
        (foreign / f"{name}.py").write_text("raise SystemExit('foreign')\n")
    hostile = {"PYTHONPATH": str(foreign), "PYTHONWARNINGS": "error", "PYTHONSTARTUP": "/none"}
    words = ["run", "--set-env", "a:b=c d", ""]
    together = [clone.start(*words, **hostile), clone.start(*words, **hostile)]
    ended = [(*process.communicate(), process.returncode) for process in together]
    answers = [handed_over((status, *text)) for *text, status in ended]
    assert sorted(set_up for set_up, _ in answers) == [False, True]
    expected = [str(clone.root), str(clone.home), words, str(clone.venv)]
    assert [given for _, given in answers] == [expected, expected]
    (package,) = clone.venv.glob("lib/python3*/site-packages/sample_a.py")
    assert not package.with_name("sample_b.py").exists()  # only the tests need it

    assert handed_over(clone.run("run", PYTHONSAFEPATH="1"))[0] is False
    assert handed_over(clone.run("run", **hostile))[0] is False

    activated = clone.start("test", python=str(python))
    output, errors = activated.communicate()
    assert handed_over((activated.returncode, output, errors))[0] is True
    assert package.with_name("sample_b.py").exists()

    clone.lock("requirements.lock", "sample_c")
    clone.lock("requirements-test.lock", "sample_d")
    assert handed_over(clone.run("test", "-x", **hostile))[0] is True
    assert package.with_name("sample_c.py").exists() and package.with_name("sample_d.py").exists()
    assert handed_over(clone.run("test", "-x"))[0] is False


@pytest.mark.long
def test_without_an_index_there_is_one_line_and_the_next_time_it_is_tried_again(clone: Clone):
    clone.have_pip()
    unreachable = {
        "PIP_NO_INDEX": "",
        "PIP_FIND_LINKS": "",
        "PIP_INDEX_URL": "http://127.0.0.1:9/",
        "PIP_RETRIES": "0",
    }
    line = refused(clone.run("nightly", **unreachable))
    assert "ERROR: " in line and "is a package index reachable?" in line
    assert f"(all of it: {clone.home}/set-up.log)" in line
    assert "No matching distribution" in (clone.home / "set-up.log").read_text()
    assert not list(clone.venv.glob("*.installed"))
    (clone.home / "set-up.log").unlink()
    assert handed_over(clone.run())[0] is True  # completes what is there


# With everything that takes time played.


@pytest.fixture
def door(clone: Clone, monkeypatch: pytest.MonkeyPatch):
    """Run the script in this process; set-up commands do what a test wants. Exit status and errors."""
    for name, value in clone.environment().items():
        monkeypatch.setenv(name, value)

    def run(capsys, *words: str, play=lambda command: (0, b""), **more: Any) -> tuple[int, str, str]:
        def played(command: list[str], **_: Any) -> SimpleNamespace:
            status, output = play(command)
            return SimpleNamespace(returncode=status, stdout=output)

        monkeypatch.setattr(subprocess, "run", played)
        monkeypatch.setattr(sys, "argv", ["plumbline", *words])
        for name, value in more.items():
            monkeypatch.setattr(sys, name, value)
        with monkeypatch.context() as isolated, pytest.raises(SystemExit) as ended:
            isolated.setattr(sys, "flags", IsolatedFlags())
            runpy.run_path(str(clone.root / "plumbline"), run_name="__main__")
        return ended.value.code, *capsys.readouterr()

    return run


@pytest.mark.parametrize("version", [(3, 0, 0), (3, 6, 15), (3, 9, 18)])
def test_an_old_python_gets_one_line(door, capsys, version):
    line = refused(door(capsys, version_info=version))
    found = ".".join(map(str, version))
    assert line == f"needs Python 3.10 or newer, this is {found}: start it as python3.X ./plumbline"


@pytest.mark.parametrize("version", [(3, 5), (3, 9)])
def test_an_old_python_can_read_the_script(version: tuple[int, int]):
    ast.parse((ROOT / "plumbline").read_text(), feature_version=version)


def runs(name: str) -> bool:
    """Whether there is such a program and it is a Python."""
    path = shutil.which(name)
    return bool(path) and subprocess.run([path, "-c", "pass"], check=False, capture_output=True).returncode == 0


def test_an_old_python_that_is_really_old(clone: Clone):
    found = [name for name in OLD if runs(name)]
    if not found:
        pytest.skip(f"needs one of {', '.join(OLD)}")
    for name in found:
        line = refused(clone.run("nightly", python=name))
        said = f"needs Python 3.10 or newer, this is {name.removeprefix('python')}."
        assert line.startswith(said)
    assert not clone.home.exists()


def test_a_python_without_its_venv_module_is_told_which_package_is_missing(door, capsys, clone):
    said = b"The virtual environment was not created\nbecause ensurepip is not available.\n\n"
    line = refused(door(capsys, play=lambda _: (1, said)))
    assert "because ensurepip is not available.; install the package that brings" in line
    assert "(Debian: python3-venv)" in line
    assert not (clone.venv / "requirements.lock.installed").exists()


@pytest.mark.parametrize("output", [b"", b"\n \n", b"\xff\xfe\n"])
def test_a_set_up_that_fails_without_a_word_is_one_line_too(door, capsys, output: bytes):
    assert " ... failed: " in refused(door(capsys, play=lambda _: (1, output)))


def test_what_is_not_installed_whole_is_not_stamped(door, capsys, clone: Clone):
    """The first step goes well, the second does not."""

    def play(command: list[str]) -> tuple[int, bytes]:
        (clone.venv / "bin").mkdir(parents=True, exist_ok=True)
        return ("pip" in command, b"ERROR: no space\n  detail\n")

    assert ": ERROR: no space; " in refused(door(capsys, play=play))
    assert not list(clone.venv.glob("*.installed"))


def test_a_failed_step_counts_where_whoever_started_it_ignores_ended_programs(door, capsys):
    def fail(_: list[str]) -> tuple[int, bytes]:
        return subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"]).wait(), b""

    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        assert " ... failed: " in refused(door(capsys, play=fail))
    finally:
        signal.signal(signal.SIGCHLD, before)


def test_an_interrupted_set_up_is_one_line(door, capsys):
    def interrupt(_: list[str]) -> tuple[int, bytes]:
        raise KeyboardInterrupt

    status, _, errors = door(capsys, play=interrupt)
    assert (status, errors) == (130, "plumbline: interrupted\n")


@pytest.mark.parametrize("home", ["file", "file/below"])
def test_a_work_directory_that_cannot_be_made_is_one_line(door, capsys, tmp_path, monkeypatch, home):
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("PLUMBLINE_HOME", str(tmp_path / home))
    line = refused(door(capsys))
    assert line.startswith(f"{tmp_path}/file")
    assert line.endswith("choose another work directory with PLUMBLINE_HOME")


@plants("security", "a work directory that a shell would run, or a compiler script misread",
        "the first start of a clone", "", 2, "which …; choose another folder (PLUMBLINE_HOME)")  # fmt: skip
@pytest.mark.parametrize("name", ["x$(touch F)", "a b", "a:b", "a'b"])
def test_a_work_directory_that_is_misread_is_refused_before_it_is_made(
    door, capsys, tmp_path, monkeypatch, name: str, declared: Declared
):
    """It took two minutes and hundreds of megabytes until somebody looked at the name."""
    monkeypatch.setenv("PLUMBLINE_HOME", str(tmp_path / name))
    status, _, errors = ended = door(capsys)
    assert refused(ended).startswith(f"{tmp_path / name}: has a ")
    declared.check((), status, [errors])
    assert not (tmp_path / name).exists()


@pytest.mark.parametrize("place", ["elsewhere", "here", "linked"])
def test_an_environment_that_was_moved_is_made_anew(door, capsys, clone: Clone, place: str):
    """Its programs begin with the path of a Python that is gone, and pip takes them for installed."""
    at = clone.venv.with_name("kept") if place == "linked" else clone.venv
    (at / "bin").mkdir(parents=True)
    if place == "linked":
        clone.venv.symlink_to(at)
    (at / "bin" / "python").symlink_to(sys.executable)
    first = clone.home.with_name("before") / "venv" if place == "elsewhere" else at
    (at / "bin" / "pip").write_text(f"#!{first}/bin/python3\n")
    commands: list[list[str]] = []
    door(capsys, "list", play=lambda command: commands.append(command) or (1, b""))
    assert ("--clear" in commands[0]) is (place == "elsewhere")


def test_another_python_in_the_same_place_is_set_up_again(door, capsys, clone: Clone, monkeypatch):
    """After an upgrade of the machine, the packages of the old Python are not those of the new one."""
    handed: list[list[str]] = []

    def execv(_: str, words: list[str]) -> None:
        handed.append(words)
        raise KeyboardInterrupt  # the script would be another program from here on

    commands: list[list[str]] = []
    python = clone.venv / "bin" / "python"
    python.parent.mkdir(parents=True)
    for name in ("python3.10", "python3.11"):
        shutil.copy("/bin/true", clone.home / name)

    def upgrade(to: str) -> int:
        python.unlink(missing_ok=True)
        python.symlink_to(clone.home / to)
        commands.clear()
        door(capsys, "list", play=lambda command: commands.append(command) or (0, b""))
        return len(commands)

    monkeypatch.setattr(os, "execv", execv)
    assert upgrade("python3.10") == 2
    assert upgrade("python3.10") == 0
    assert upgrade("python3.11") == 2
    assert handed[-1] == [str(python), "-I", str(clone.root / "plumbline"), "list"]


# With a mirror.


class Mirrored(Clone):
    """A clone whose packages are in a mirror; pip's own settings lead nowhere."""

    def __init__(self, directory: Path) -> None:
        super().__init__(directory)
        self.mirror = directory / "mirror"
        self.mirror.mkdir()
        self.index.rename(self.mirror / "wheels")
        self.describe()

    def describe(self, **changes: Any) -> None:
        """Write the manifest of what is there."""
        paths = list(manifest.list_present(self.mirror, "wheels"))
        files = tuple(manifest.describe_file(self.mirror, path) for path in paths)
        contents = replace(Manifest(*manifest.describe_python(), files=files), **changes)
        (self.mirror / NAME).write_bytes(encode_manifest(contents))

    def environment(self, **more: str) -> dict[str, str]:
        nowhere = {"PIP_NO_INDEX": "", "PIP_INDEX_URL": "http://127.0.0.1:9/", "PIP_RETRIES": "0"}
        return super().environment(**nowhere, **more)


@pytest.fixture
def mirrored(tmp_path: Path) -> Mirrored:
    return Mirrored(tmp_path)


def test_a_mirror_is_enough_and_a_later_call_needs_not_be_told_again(mirrored: Mirrored):
    """By the option; what is remembered brings the packages of the tests later."""
    mirrored.have_pip()
    assert handed_over(mirrored.run("setup", "--mirror", str(mirrored.mirror)))[0] is True
    (mirrored.home / "mirror").write_text(f"{mirrored.mirror}\n")  # as the command does
    assert handed_over(mirrored.run("test"))[0] is True
    assert list(mirrored.venv.glob("lib/python3*/site-packages/sample_b.py"))


def test_a_mirror_may_be_named_by_the_environment(mirrored: Mirrored):
    mirrored.have_pip()
    ended = mirrored.run("nightly", PLUMBLINE_MIRROR=str(mirrored.mirror))
    assert handed_over(ended)[0] is True


@pytest.mark.parametrize("words", [["--mirror"], ["--mirror="], ["--mirror", ""]])
def test_an_option_that_names_nothing_does_not_mean_the_index(door, capsys, words):
    assert refused(door(capsys, "setup", *words)).startswith("--mirror: names nothing")


def test_nothing_is_installed_from_a_mirror_that_does_not_verify(mirrored: Mirrored):
    def line(words: str) -> None:
        found = refused(mirrored.run("setup", f"--mirror={mirrored.mirror}"))
        assert words in found and not mirrored.venv.exists()

    (wheel, *_) = sorted((mirrored.mirror / "wheels").iterdir())
    whole = wheel.read_bytes()
    wheel.write_bytes(whole[:-1] + b"x")
    line(f"{wheel}: is damaged")
    wheel.unlink()
    line(f"{wheel}: is missing")
    wheel.write_bytes(whole)
    (mirrored.mirror / "wheels" / "evil-1-py3-none-any.whl").write_bytes(whole)
    line("evil-1-py3-none-any.whl: is not in mirror.json; remove it")
    mirrored.describe(python="2.7")
    line("its wheels are for Python 2.7 on ")
    (mirrored.mirror / NAME).unlink()
    line("is not a mirror")


def test_a_mirror_that_lacks_a_package_is_told_from_a_missing_index(mirrored: Mirrored):
    (wheel,) = (mirrored.mirror / "wheels").glob("sample_a*")
    mirrored.have_pip()
    mirrored.index.mkdir()  # where pip's settings lead; it must not count
    wheel.rename(mirrored.index / wheel.name)
    mirrored.describe()
    line = refused(mirrored.run("setup", "--mirror", str(mirrored.mirror)))
    assert "complete the mirror with ./plumbline mirror create of this version" in line
