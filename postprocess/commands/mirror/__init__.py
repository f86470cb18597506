"""The command ``mirror``: everything that a machine without a network needs."""

from __future__ import annotations

from postprocess.commands.mirror import check, create

HELP = "Create or verify a mirror for machines without a network."
EXAMPLE = "./plumbline mirror create /shared/mirror"
FAILS = "see the commands below"

COMMANDS = {"create": create, "check": check}
