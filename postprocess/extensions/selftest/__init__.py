"""Injected slowdowns: what a night catches, misses and flags wrongly."""

from postprocess.cli.extensions import Extension, ExtensionCommand

EXTENSION = Extension(
    commands=(
        ExtensionCommand(
            "selftest",
            "postprocess.extensions.selftest.command",
            "to look closer",
            "Inject slowdowns into nightly runs; report detection rates and false alarms.",
        ),
    )
)
