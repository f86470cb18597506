"""The command ``site``: a new site from nothing to its first verdict."""

from __future__ import annotations

from postprocess.commands.site import check, new, try_site

HELP = "Write a site file of this machine, check one, or try one out."
EXAMPLE = "./plumbline site new mycluster"
FAILS = "see the commands below"

COMMANDS = {"new": new, "check": check, "try": try_site}
