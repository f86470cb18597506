"""Writes, below the work directory, the Spack environment of one MPI on this machine.

It is a copy of ``spack_envs/<family>/spack.yaml`` with a ``machine.yaml`` beside it. Nothing is written to the
sources. What has not changed is not touched; if something has, the old solution (``spack.lock``) goes, because
Spack would otherwise build by it for ever.
"""

from __future__ import annotations

import hashlib
import os
import platform
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from postprocess.base import files
from site_configs.mpi.family import PACKAGES
from spack_envs import facades
from spack_envs.errors import SpackEnvironmentError
from spack_envs.facades import FacadeMpi
from spack_envs.layout import SpackLayout
from spack_envs.mirrored import MirroredSources, write_repository
from spack_envs.provide import Spack
from spack_envs.recipes import BUILT, TOOLS, Recipes, build_closed_recipes
from spack_envs.toolchain import ExternalPackage, find_toolchain

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.+-]*")
VERSION = re.compile(r"[0-9][A-Za-z0-9_.-]*")
#: Spack replaces other characters in some of the paths it is given, and expands some.
SAFE_PATH = re.compile(r"/[A-Za-z0-9_+./-]*")


@dataclass(frozen=True)
class SpackEnvironment:
    """A Spack environment that is ready for ``spack -e DIRECTORY install``."""

    directory: Path
    prefix: Path  #: of the MPI, as Spack is told
    changed: bool  #: whether it will be solved anew

    @property
    def lock(self) -> Path:
        """Spack's solution, there after the first install."""
        return self.directory / "spack.lock"


def write_environment(
    work: Path,
    source: Path,
    spack: Spack,
    mpi: FacadeMpi,
    toolchain: Sequence[ExternalPackage] | None = None,
    sources: MirroredSources | None = None,
) -> SpackEnvironment:
    """Write, or bring up to date, the environment of one MPI.

    :param work: work directory; everything is below its folder ``spack``
    :param source: root of Plumbline's sources
    :param sources: of a mirror, which Spack asks first
    :raises SpackEnvironmentError: if it cannot be made on this machine, in one line.
    """
    layout = SpackLayout(work)
    check_names(mpi, (work, source, Path(mpi.prefix), *([sources.folder] if sources else [])))
    try:
        return assemble_environment(layout, source, spack, mpi, toolchain or find_toolchain(), sources)
    except OSError as error:
        raise SpackEnvironmentError(f"{error.filename}: {error.strerror}") from None


def assemble_environment(
    layout: SpackLayout,
    source: Path,
    spack: Spack,
    mpi: FacadeMpi,
    toolchain: Sequence[ExternalPackage],
    sources: MirroredSources | None,
) -> SpackEnvironment:
    """Assemble the parts of an environment, one after the other."""
    layout.make_folders()
    ours = source / "spack_envs"
    recipes = build_closed_recipes(layout.recipes, spack.packages, ours / "spack_repo" / "plumbline")
    substitutes = sources.substitutes if sources else ()
    replaced = write_repository(layout.mirrored, recipes.plumbline, substitutes)
    prefix = facades.prefix_for_spack(mpi, layout.facades)
    directory = layout.environment(mpi.name)
    common = {layout.environments / "common" / path.name: path for path in ours.glob("common/*.yaml")}
    copies = {directory / "spack.yaml": ours / mpi.family / "spack.yaml"} | common
    wanted = {copy: files.read_text(path) for copy, path in copies.items()}
    inputs = hashlib.sha256("\0".join([spack.version, *wanted.values()]).encode()).hexdigest()
    settings = {
        "config": layout.config(recipes),
        "bootstrap": {"enable": False},
        "repos:": replaced | {"plumbline": str(recipes.plumbline), "builtin": str(recipes.builtin)},
        "mirrors:": build_mirror_section(sources, os.environ.get("PLUMBLINE_SPACK_MIRROR")),
        "concretizer": {"static_analysis": True},
        "develop": {"mpicost": {"spec": "mpicost@main", "path": str(source / "suite")}},
        "packages": build_packages_section(mpi, prefix, toolchain, recipes),
    }
    wanted[directory / "machine.yaml"] = render_machine_yaml(mpi.name, inputs, settings)
    return SpackEnvironment(directory, prefix, update_directory(directory, wanted))


def check_names(mpi: FacadeMpi, paths: Sequence[Path]) -> None:
    """Refuse what Spack would misread.

    :raises SpackEnvironmentError: naming the value and the fix.
    """
    if mpi.family not in PACKAGES:
        known = ", ".join(PACKAGES)
        raise SpackEnvironmentError(
            f"{mpi.name}: no Spack environment for family {mpi.family!r} (have {known})"
        )
    if not NAME.fullmatch(mpi.name) or mpi.name == "common":
        raise SpackEnvironmentError(f"environment {mpi.name!r}: not a name (letters, digits, _ . + -)")
    if not VERSION.fullmatch(mpi.version):
        raise SpackEnvironmentError(f"{mpi.name}: {mpi.version!r} is not a version number")
    for path in paths:
        if not SAFE_PATH.fullmatch(str(path)):
            raise SpackEnvironmentError(
                f"{str(path)!r}: Spack needs an absolute path of letters, digits and _ + . - only"
            )


def build_mirror_section(sources: MirroredSources | None, address: str | None) -> dict[str, Any]:
    """Build the section ``mirrors``: ours alone, if there is one, and after it the site's own."""
    site = {"site": {"url": address, "source": True, "binary": False}} if address else {}
    return ({"plumbline": sources.entry} if sources else {}) | site


def build_packages_section(
    mpi: FacadeMpi, prefix: Path, toolchain: Sequence[ExternalPackage], recipes: Recipes
) -> dict[str, Any]:
    """Build the section ``packages``: this MPI and the toolchain as externals, and only BUILT compiled.

    A double colon in Spack's files (one at the end of a key here) drops what a site's own files say.
    """
    name, variants = PACKAGES[mpi.family]
    spec = f"{name}@={mpi.version}{variants}"
    own = ExternalPackage(name, spec, str(prefix), modules=tuple(mpi.modules))
    externals = [own, *toolchain]
    given = {external.package for external in externals}
    closed = {*recipes.closed, *TOOLS} - given
    section: dict[str, Any] = {package: {"buildable": False} for package in sorted(closed)}
    section |= {f"{package}:": {"buildable": True} for package in BUILT}
    section |= {f"{external.package}:": build_external_entry(external) for external in externals}
    section["mpi:"] = {"buildable": False, "require": [f"{name}@={mpi.version}"]}
    section["all:"] = {"require": [f"target={platform.machine()}"]}
    return section


def build_external_entry(external: ExternalPackage) -> dict[str, Any]:
    """Build the entry of an external package."""
    entry: dict[str, Any] = {"spec": external.spec, "prefix": external.prefix}
    if external.compilers:
        entry["extra_attributes"] = {"compilers": external.compilers}
    if external.modules:
        entry["modules"] = list(external.modules)
    return {"buildable": False, "externals": [entry]}


def render_machine_yaml(name: str, inputs: str, settings: dict[str, Any]) -> str:
    """Render ``machine.yaml``. Of two repositories with the same package, the one named first counts."""
    head = f"# Written by Plumbline for {name}; changes are overwritten.\n# Other inputs: {inputs[:16]}\n"
    return head + yaml.safe_dump(settings, sort_keys=False, width=1000)


def update_directory(directory: Path, wanted: dict[Path, str]) -> bool:
    """Write what differs; the old solution goes first, so that being killed between leaves no stale one."""
    changed = any(files.is_different(path, text) for path, text in wanted.items())
    if changed:
        (directory / "spack.lock").unlink(missing_ok=True)
    for path, text in wanted.items():
        files.write_text(path, text)
    return changed
