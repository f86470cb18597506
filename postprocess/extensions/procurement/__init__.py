"""Procurement: rules that a program checks, offers with stated risks, and their acceptance."""

from postprocess.cli.extensions import Extension, ExtensionCommand

PURCHASE = "before a purchase, and after"

EXTENSION = Extension(
    commands=(
        ExtensionCommand("offer", f"{__name__}.command", PURCHASE),
        ExtensionCommand("accept", f"{__name__}.check_command:ACCEPT", PURCHASE),
    )
)
