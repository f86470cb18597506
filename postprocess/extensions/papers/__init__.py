"""A session in the tables and figures of the papers: a package or a module for each, above ``common``."""

from postprocess.cli.extensions import Extension, ExtensionCommand

EXTENSION = Extension(
    commands=(
        ExtensionCommand(
            "papers",
            "postprocess.extensions.papers.command",
            "to look closer",
            "Show sessions in the tables and figures of the papers.",
        ),
    ),
    linters={"historical": "postprocess.extensions.papers.printed:lint_history"},
)
