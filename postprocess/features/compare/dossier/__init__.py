"""The command ``dossier``: people decide on a comparison, sign it, and others verify that."""

from __future__ import annotations

from postprocess.features.compare.dossier import sign, verify

HELP = "Sign the decision on a comparison, or verify a signed one."
EXAMPLE = "./plumbline dossier sign compare/20261123T120000Z --accept --key ~/.ssh/id_ed25519"
FAILS = "see the commands below"

COMMANDS = {"sign": sign, "verify": verify}
