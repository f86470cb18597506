"""The examples of docs/scheduling.md are read by the programs that they are for, or by their schemas."""

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from postprocess.cli.parser import Parser
from postprocess.main import build_parser
from tests.support.paths import ROOT

TEXT = (ROOT / "docs" / "scheduling.md").read_text()
COMMAND = re.compile(r"\./plumbline (nightly [^|>'\n]*?)(?: --on-failure|>|'|\n|$)")


def indented(after: str) -> str:
    """The indented block that follows these words."""
    _, _, rest = TEXT.partition(after)
    found = re.match(r"\n*((?:    .*\n|\n)+)", rest)
    assert found, after
    return re.sub("^    ", "", found[1], flags=re.MULTILINE)


def fenced(language: str) -> str:
    return TEXT.partition(f"```{language}\n")[2].partition("```")[0]


@pytest.mark.machine
def test_systemd_reads_its_units(tmp_path: Path) -> None:
    """What it does not understand it ignores, and says so."""
    if not shutil.which("systemd-analyze"):
        pytest.skip("no systemd-analyze (Debian: apt-get install systemd)")
    for kind in ("service", "timer"):
        unit = indented(f"`plumbline.{kind}`:\n").replace("/sw/plumbline", str(ROOT))
        (tmp_path / f"plumbline.{kind}").write_text(unit)
    units = [tmp_path / "plumbline.timer", tmp_path / "plumbline.service"]
    words = ["systemd-analyze", "verify", *units]
    done = subprocess.run(words, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")


def test_gitlab_pipeline_is_one_by_its_schema(tmp_path: Path) -> None:
    pytest.importorskip("check_jsonschema", reason="./plumbline test installs check-jsonschema")
    (tmp_path / "gitlab.yml").write_text(fenced("yaml"))
    words = ["--builtin-schema", "vendor.gitlab-ci", "--data-transform", "gitlab-ci"]
    command = [sys.executable, "-m", "check_jsonschema", *words, str(tmp_path / "gitlab.yml")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


def test_jenkins_pipeline_is_groovy() -> None:
    parser = pytest.importorskip("groovy_parser.parser", reason="./plumbline test installs it")
    assert parser.parse_groovy_content(fenced("groovy")).data


@pytest.mark.parametrize("where", ["## cron", "## Slurm's scrontab"])
def test_lines_of_cron_have_five_fields_and_a_command(where: str) -> None:
    *options, line = indented(where).strip().splitlines()
    assert all(re.fullmatch(r"#SCRON --[a-z-]+=\S+", option) for option in options)
    minute, hour, *others, command = line.split(maxsplit=5)
    assert 0 <= int(minute) < 60 and 0 <= int(hour) < 24 and others == ["*"] * 3
    assert "./plumbline nightly " in command and "%" not in command  # a line's end, to cron


def test_every_example_is_a_command_that_plumbline_reads() -> None:
    parser: Parser = build_parser()
    found = COMMAND.findall(TEXT.replace("\\\n", ""))
    assert len(found) >= 4
    for words in found:
        assert parser.parse_args(words.split()).site == "mycluster"
