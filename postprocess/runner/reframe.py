"""Drive ReFrame as a separate process: the single place that knows its command line."""

import os
import re
import sys
import sysconfig
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from postprocess.base.errors import UsageError
from postprocess.base.files import read_text
from postprocess.base.processes import start_module
from postprocess.base.progress import Progress
from postprocess.model.session import Selection
from postprocess.runner.reframe_server import ReframePass, ReframeServer
from site_configs.schedulers.base import UsableNodes
from site_configs.schema.reframe_request import ReframeRequest, write_request
from site_configs.schema.variables import HOME, SESSION

START = "postprocess.runner.reframe_main"
#: CMake itself. Beside Python is a script that starts it, and reads the names of its 3000 files at each call.
CMAKE = os.path.join(sysconfig.get_path("platlib"), "cmake", "data", "bin")


class RefusedError(UsageError):
    """ReFrame refuses the site or a check; ``log`` has all that it printed."""

    def __init__(self, said: str, log: Path) -> None:
        super().__init__(f"{said} (all of it: {log})")
        self.said = said
        self.log = log


@dataclass(frozen=True)
class ReframeDriver:
    """ReFrame for one session, with all paths."""

    source: Path
    work: Path
    session: Path
    reference_roots: Sequence[Path]
    spack: Path | None
    #: usable nodes by partition, if some are down or excluded
    usable_nodes: Mapping[str, UsableNodes] = field(default_factory=dict)
    progress: Progress | None = None  #: shows what the checks report about their own set-up

    @property
    def report(self) -> Path:
        return self.session / "reframe" / "report.json"

    @property
    def log(self) -> Path:
        return self.session / "reframe" / "output.txt"

    def command(self, selection: Selection, action: str) -> list[str]:
        """Return ReFrame's command line. ``action`` is ``--run`` or ``--dry-run``.

        Warnings are errors, because ReFrame only warns about a check file that does not import, and drops it.
        """
        words = start_module(self.source, START)
        words += ["--nocolor", "--warn-as-error", "--keep-stage-files"]
        checks = selection.checks or self.source / "reframe_checks"
        words += ["-C", str(selection.site), "-c", str(checks), "-R"]
        words += ["--prefix", str(self.session / "reframe"), "--report-file", str(self.report)]
        words += [f"--tag=^{selection.tag}$"] if selection.tag else []
        words += [f"--repeat={selection.launches}"]
        words += [f"--exec-policy={'async' if selection.side_by_side else 'serial'}"]
        if selection.environments:
            words += ["-p", f"^({'|'.join(map(re.escape, selection.environments))})$"]
        return [*words, action]

    def read_job_outputs(self) -> str:
        """Read all output of the session's jobs, from both streams."""
        jobs = sorted((self.session / "reframe" / "stage").rglob("rfm_job.[oe][ur][tr]"))
        return "".join(read_text(job, "replace") for job in jobs)

    def environment(self) -> dict[str, str]:
        """Return ReFrame's environment variables. ReFrame files in the home directory have no effect."""
        variables = dict(os.environ)
        for name in [name for name in variables if name.startswith("RFM_")]:
            del variables[name]
        folders = [*filter(os.path.isdir, [CMAKE]), str(Path(sys.executable).parent)]
        variables |= {
            "PATH": os.pathsep.join([*folders, variables.get("PATH", os.defpath)]),
            HOME: str(self.work),
            SESSION: str(self.session),
        }
        return variables

    def request(self, selection: Selection) -> ReframeRequest:
        """Return the session's request to sites and checks."""
        return ReframeRequest(
            choice=selection.choice,
            set_env=selection.set_env,
            verbose=dict(selection.verbose),
            shell=selection.shell,
            oversubscribe=selection.oversubscribe,
            only_looking=selection.only_looking,
            built=selection.built,
            references=[str(root) for root in self.reference_roots],
            spack=str(self.spack or ""),
            usable_nodes={name: asdict(nodes) for name, nodes in self.usable_nodes.items() if nodes.away},
        )

    def start(self, selection: Selection, action: str) -> ReframePass:
        """Start ReFrame, which is made to end itself and its jobs when this process dies for any reason.

        An earlier report, for example from a dry run, is removed so that it cannot be mistaken for this run's.
        """
        self.log.parent.mkdir(parents=True, exist_ok=True)
        self.report.unlink(missing_ok=True)
        write_request(self.session, self.request(selection))
        server = ReframeServer.find(self.session.parent)
        return server.start(self.command(selection, action), self.source, self.environment())

    def lines(self, process: ReframePass) -> Iterator[str]:
        """Yield the lines that ReFrame prints as they arrive, and write them to the session's log."""
        with self.log.open("a", encoding="utf-8") as log, process.stdout:
            for line in process.stdout:
                log.write(line)
                log.flush()
                if self.progress:
                    self.progress.pass_on(line.rstrip("\n"))
                yield line.rstrip("\n")
        process.wait()
