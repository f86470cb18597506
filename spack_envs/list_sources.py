"""Run by ``spack -e ENVIRONMENT python``: print the sources that its packages are built from, as JSON."""

import json

import spack.environment


def describe_source(spec):
    """Describe a package: its version, and the checksum or commit that identifies its source in the recipe."""
    about = spec.package.versions.get(spec.version, {})
    return {
        "package": spec.name,
        "version": str(spec.version),
        "sha256": about.get("sha256") or "",
        "commit": about.get("commit") or "",
        "git": about.get("git") or getattr(spec.package, "git", None) or "",
    }


specs = [
    spec
    for spec in spack.environment.active_environment().all_specs()
    if not spec.external and spec.package.has_code and "dev_path" not in spec.variants
]
print(json.dumps([describe_source(spec) for spec in specs]))
