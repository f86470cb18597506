"""The command ``references``: what calibrations propose, what they cost, and what is stale."""

from __future__ import annotations

from postprocess.commands.references import age, forget, propose, recompute

HELP = "Propose new references from calibrations, list stale ones, plan a calibration."
EXAMPLE = "./plumbline references propose"
FAILS = "see the commands below"

COMMANDS = {"propose": propose, "age": age, "recompute": recompute, "forget": forget}
