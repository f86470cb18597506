"""Names of the environment variables through which Plumbline tells ReFrame, sites and checks what to do."""

from __future__ import annotations

#: Where everything that is not source lives.
HOME = "PLUMBLINE_HOME"
#: The session that Plumbline runs. It was told the site, so host names need not match.
SESSION = "PLUMBLINE_SESSION"
#: Directories with references, the first one first, with colons between.
REFERENCES = "PLUMBLINE_REFERENCES"
#: What the user chose, as JSON ``{variable of a check: value}``.
CHOICE = "PLUMBLINE_CHOICE"
#: Variables set for the launches of one environment, as JSON ``{environment: {name: value}}``.
SET_ENV = "PLUMBLINE_SET_ENV"
#: Set to 1 to allow more processes than cores (for trying things out; such times mean little).
OVERSUBSCRIBE = "PLUMBLINE_OVERSUBSCRIBE"
#: Variables of the user's shell that steer an MPI, as JSON ``{name: value}``.
SHELL = "PLUMBLINE_SHELL"
#: Set to 1 where a site is only looked at, perhaps on a machine without its modules.
ONLY_LOOKING = "PLUMBLINE_ONLY_LOOKING"
#: Spack's executable; empty where there is none.
SPACK_COMMAND = "PLUMBLINE_SPACK"
