"""What is generated from the parser is current, complete, and works in the tools that read it."""

import re
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest

from postprocess.main import build_parser
from postprocess.write_docs import DOCS, ENVIRONMENT, commands, documents
from tests.support.paths import ROOT

DOCUMENTS = documents()
EVERY = [command for command in commands(build_parser()) if command.words]
BASH = DOCS / "completion" / "plumbline.bash"
ZSH = DOCS / "completion" / "_plumbline"

#: Variables that Plumbline sets for programs that it starts.
INTERNAL = {"TOKEN", "READING", "SESSION", "SET_UP_SECONDS", "FACTS", "WITNESS", "TESTS_SHARED"}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_a_generated_file_is_current(name: str):
    """If not: ``python -m postprocess.write_docs``."""
    assert (DOCS / name).read_text() == DOCUMENTS[name]


@pytest.mark.parametrize("each", EVERY, ids=lambda each: each.name)
def test_the_page_has_synopsis_example_options_and_exit_status(each):
    _, found, rest = DOCUMENTS["commands.md"].partition(f"# plumbline {each.name}\n")
    section = re.split(r"^#+ ", rest, maxsplit=1, flags=re.M)[0]
    assert found
    assert all(f"```\n{text}\n```" in section for text in (each.synopsis, each.example))
    assert all(f"\n| {title} |" in section for title in each.groups)
    for option in (option for own in each.groups.values() for option in own):
        assert f"| `{option.usage}` | " in section
    assert each.below or "Exit status: 0 success; " in section


def test_what_an_option_excludes_is_said():
    assert "(default: 20); not with --seconds |" in DOCUMENTS["commands.md"]


def test_a_cell_does_not_end_its_row():
    rows = [line for line in DOCUMENTS["commands.md"].splitlines() if line.startswith("|")]
    assert {len(re.findall(r"(?<!\\)\|", row)) for row in rows} == {3}


def set_by_users(text: str) -> set[str]:
    names = set(re.findall(r"\bPLUMBLINE_([A-Z_]*[A-Z])\b", text)) - INTERNAL
    return {f"PLUMBLINE_{name}" for name in names if not name.startswith("DELAY")}


def test_the_page_has_every_variable_that_the_sources_read():
    folders = ("postprocess", "site_configs", "spack_envs", "reframe_checks")
    sources = [path for folder in folders for path in (ROOT / folder).rglob("*.py")]
    sources = [path for path in sources if path.name != "write_docs.py"]
    read = set_by_users("".join(path.read_text() for path in [ROOT / "plumbline", *sources]))
    assert read == {name for name in ENVIRONMENT if name.startswith("PLUMBLINE_")}


def completed(words: str, folder: Path) -> list[str]:
    """What bash offers for the last of these words."""
    given = words.split(" ")
    script = f"""
        source {shlex.quote(str(BASH))}
        COMP_WORDS=({" ".join(map(shlex.quote, given))}) COMP_CWORD={len(given) - 1}
        eval "$(complete -p plumbline | sed 's/.*-F \\([^ ]*\\) .*/function=\\1/')"
        "$function" && printf '%s\\n' "${{COMPREPLY[@]}}"
    """
    done = subprocess.run(["bash", "--norc", "-c", script], cwd=folder, capture_output=True,
                          text=True, check=True, timeout=60)  # fmt: skip
    return done.stdout.split()


@pytest.mark.parametrize(
    ("words", "offered"),
    [
        ("./plumbline ni", ["nightly"]),
        ("./plumbline references ", ["propose", "age", "recompute", "forget"]),
        ("./plumbline run --cache ", ["evict", "flush", "warm", "rotate"]),
        ("./plumbline run --routine bcast --pro", ["--program", "--processes"]),
        ("./plumbline where mpic", ["mpicost", "mpicc"]),
        ("./plumbline site new --sch", ["--scheduler"]),
        ("./plumbline nightly --json s", ["summary.json"]),
        ("./plumbline mirror create d", ["directory"]),
        ("./plumbline export --strict", []),
    ],
)
def test_bash_completes(words: str, offered: list[str], tmp_path: Path):
    (tmp_path / "summary.json").touch()
    (tmp_path / "directory").mkdir()
    (tmp_path / "done").touch()
    assert [word for word in completed(words, tmp_path) if word] == offered


def test_bash_knows_every_command(tmp_path: Path):
    assert completed("./plumbline ", tmp_path) == [e.name for e in EVERY if len(e.words) == 1]


@pytest.mark.skipif(not shutil.which("zsh"), reason="no zsh (Debian: apt-get install zsh)")
def test_zsh_finds_the_completion():
    """The whole of zsh's completion needs a terminal: here it is loaded and has every command."""
    script = f"""
        fpath=({shlex.quote(str(ZSH.parent))} $fpath)
        autoload -U compinit && compinit -D && print ${{_comps[plumbline]}}
        eval "$(<{shlex.quote(str(ZSH))})"
        _describe() {{ print -l ${{_commands%%:*}} }}
        _shtab_plumbline_commands
    """
    done = subprocess.run(["zsh", "-f", "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert done.stderr == ""
    first, *names = done.stdout.split()
    assert first == "_plumbline"
    assert set(names) == {command.name for command in EVERY if len(command.words) == 1}
