"""The command ``offer``: rules of a procurement, and offers that check themselves."""

from __future__ import annotations

from postprocess.extensions.procurement.command import check, compare, new, references, run, seal, sheet

HELP = "Write and check the rules of a procurement; measure, fill in, seal and compare offers."
EXAMPLE = "./plumbline offer new rules.toml"
FAILS = "see the commands below"

COMMANDS = {
    "new": new,
    "check": check,
    "run": run,
    "sheet": sheet,
    "seal": seal,
    "compare": compare,
    "references": references,
}
