"""The languages, each with what makes its program ready for an MPI."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from postprocess.extensions.agreement.bindings.bench import Bench
from postprocess.extensions.agreement.bindings.compiled import prepare_c, prepare_fortran, prepare_rust
from postprocess.extensions.agreement.bindings.exchange import Program
from postprocess.extensions.agreement.bindings.interpreted import (
    prepare_intel_java,
    prepare_mpi4py,
    prepare_mpj,
)


@dataclass(frozen=True)
class Language:
    """A language with its binding; ``name`` begins with the word by which it is chosen."""

    name: str
    title: str
    prepare: Callable[[Bench], Program]


LANGUAGES = (
    Language("c", "C", prepare_c),
    Language("c-again", "C again", prepare_c),
    *(
        Language(f"fortran-{module}", f"Fortran {module}", partial(prepare_fortran, module=module))
        for module in ("mpi_f08", "mpi")
    ),
    *(
        Language(
            f"mpi4py-{style}-{level}",
            f"mpi4py {style}, {level}",
            partial(prepare_mpi4py, style=style, level=level),
        )
        for style in ("buffers", "pickled")
        for level in ("single", "default")
    ),
    Language("java-intel", "Java, Intel's binding", prepare_intel_java),
    Language("java-mpj", "Java, MPJ Express (threads)", prepare_mpj),
    Language("rust", "Rust mpi", prepare_rust),
)
KINDS = tuple(dict.fromkeys(each.name.partition("-")[0] for each in LANGUAGES))[1:]


def select_languages(kinds: Sequence[str] = ()) -> list[Language]:
    """Select C, and the languages of these kinds; all of none."""
    chosen = {"c", *(kinds or KINDS)}
    return [each for each in LANGUAGES if each.name.partition("-")[0] in chosen]
