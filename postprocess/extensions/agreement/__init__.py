"""mpicost, OSU and IMB compared with each other."""

from postprocess.cli.extensions import Extension, ExtensionCommand

EXTENSION = Extension(
    commands=(
        ExtensionCommand(
            "agree",
            "postprocess.extensions.agreement.command",
            "to look closer",
            "Compare mpicost, OSU and IMB with each other; name the program that differs.",
        ),
    )
)
