"""Procurement: rules that a program checks, offers with stated risks, and their acceptance."""

from postprocess.cli.extensions import Extension, ExtensionCommand

PURCHASE = "before a purchase, and after"

EXTENSION = Extension(
    commands=(
        ExtensionCommand(
            "offer",
            f"{__name__}.command",
            PURCHASE,
            "Write and check the rules of a procurement; measure, fill in, seal and compare offers.",
        ),
        ExtensionCommand(
            "accept",
            f"{__name__}.check_command:ACCEPT",
            PURCHASE,
            "Hold a delivered machine against a sealed offer: each row met, missed, undecided or not run.",
        ),
    )
)
