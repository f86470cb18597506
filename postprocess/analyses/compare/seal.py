"""The seal of a dossier: a manifest of all its files, signed by ``ssh-keygen``. Forgery shows, not only damage.

``sha256sum -c manifest.txt`` and ``ssh-keygen -Y verify`` check it without Plumbline, too.
"""

from __future__ import annotations

import hashlib
import subprocess
from collections.abc import Iterator
from pathlib import Path

from postprocess.base import files
from postprocess.base.errors import UsageError

MANIFEST, SIGNATURE = "manifest.txt", "manifest.txt.sig"
NAMESPACE = "plumbline-dossier"  #: of the signatures: one made for anything else is not accepted
SECONDS = 120  #: for a passphrase


def list_sealed_files(folder: Path) -> list[str]:
    """List all files of a dossier but its seal, by path below it; sorted."""
    found = (path for path in folder.rglob("*") if not path.is_dir())
    names = (path.relative_to(folder).as_posix() for path in found)
    return sorted(name for name in names if name not in (MANIFEST, SIGNATURE))


def format_manifest(folder: Path) -> str:
    """Format the manifest of a dossier: a line for each file, as ``sha256sum`` prints it.

    :raises UsageError: if a file cannot be read
    """
    return "".join(f"{digest(folder / name)}  {name}\n" for name in list_sealed_files(folder))


def digest(path: Path) -> str:
    """Return the SHA-256 of a file.

    :raises UsageError: if it cannot be read
    """
    try:
        return hashlib.sha256(files.read_regular(path)).hexdigest()
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}; a seal needs every file") from None


def seal(folder: Path, key: Path) -> None:
    """Write the manifest of a dossier and sign it.

    :param key: private key of SSH, or the public one of a key that the agent holds
    :raises UsageError: if it cannot be signed; no seal is left then
    """
    (folder / SIGNATURE).unlink(missing_ok=True)
    files.write_text(folder / MANIFEST, format_manifest(folder))
    words = ["-Y", "sign", "-f", str(key), "-n", NAMESPACE, str(folder / MANIFEST)]
    done = run_ssh_keygen(words)
    if done.returncode != 0 or not (folder / SIGNATURE).exists():
        (folder / MANIFEST).unlink()
        raise UsageError(
            f"{key}: cannot sign: {last_line(done.stderr)}; name a key of SSH by --key"
        )


def find_signer(folder: Path, signers: Path) -> str:
    """Find who signed a dossier.

    :param signers: file of allowed signers (ssh-keygen(1)), a line ``NAME KEY`` each
    :raises UsageError: if nobody of these did
    """
    signature = folder / SIGNATURE
    for path in (folder / MANIFEST, signature, signers):
        if not path.exists():
            raise UsageError(f"{path}: is not there; ./plumbline dossier sign makes a seal")
    place = ["-s", str(signature), "-f", str(signers)]
    who = run_ssh_keygen(["-Y", "find-principals", *place])
    name = who.stdout.splitlines()[0] if who.returncode == 0 and who.stdout else ""
    words = ["-Y", "verify", *place, "-I", name, "-n", NAMESPACE]
    told = files.read_regular(folder / MANIFEST).decode(errors="replace")
    done = run_ssh_keygen(words, told) if name else who
    if done.returncode != 0:
        raise UsageError(f"{signature}: {last_line(done.stderr)}; not by a signer of {signers}")
    return name


def find_changes(folder: Path) -> Iterator[str]:
    """Find what differs from the manifest: a line for each file that changed, went or came."""
    lines = files.read_regular(folder / MANIFEST).decode(errors="replace").splitlines()
    known = {name: code for code, _, name in (line.partition("  ") for line in lines)}
    here = list_sealed_files(folder)
    for name in sorted({*known, *here}):
        if name not in here:
            yield f"{name}: is missing"
        elif name not in known:
            yield f"{name}: is not in the manifest"
        elif digest(folder / name) != known[name]:
            yield f"{name}: was changed after it was signed"


def run_ssh_keygen(words: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``ssh-keygen``.

    :raises UsageError: if it is not there, or does not end
    """
    try:
        return subprocess.run(
            ["ssh-keygen", *words],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=SECONDS,
        )
    except FileNotFoundError:
        raise UsageError("ssh-keygen: is not there; install OpenSSH 8.2 or newer") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"ssh-keygen: no end after {SECONDS} s; use a key of the agent") from None


def last_line(text: str) -> str:
    """Return the last line of an error."""
    return (text.strip().splitlines() or ["it says nothing"])[-1]
