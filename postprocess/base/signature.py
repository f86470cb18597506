"""Seal a folder: a manifest of all its files, signed by ``ssh-keygen``, reveals damage and forgery.

``sha256sum -c manifest.txt`` and ``ssh-keygen -Y verify`` check the seal without Plumbline.
"""

import base64
import hashlib
import re
import struct
import subprocess
from collections.abc import Iterator
from enum import Enum
from pathlib import Path

from postprocess.base import files
from postprocess.base.archive import MOST_FILES
from postprocess.base.errors import UsageError, explaining
from postprocess.base.sanitize import sanitize_line

MANIFEST, SIGNATURE = "manifest.txt", "manifest.txt.sig"
#: Namespaces of signatures: a signature made for another purpose is not accepted.
DOSSIER, OFFER, ACCEPTANCE = "plumbline-dossier", "plumbline-offer", "plumbline-acceptance"
SECONDS = 120  #: time to enter a passphrase
#: A whole signature as ``ssh-keygen`` writes it; ``ssh-keygen`` itself ignores bytes around one.
ARMOR = re.compile(
    rb"-----BEGIN SSH SIGNATURE-----\n((?:[A-Za-z0-9+/=]{1,76}\n)+)-----END SSH SIGNATURE-----\n"
)
MAGIC = b"SSHSIG" + struct.pack(">I", 1)
LARGEST_SIGNATURE = 1 << 16  #: bytes; an RSA signature of 16384 bits has 6 kB
LARGEST_SIGNERS = 1 << 24
LINE = re.compile(r"[0-9a-f]{64}  (.+)")  #: a line of a manifest
#: A line of allowed signers: name, options, type of key, key.
SIGNER = re.compile(r"\s*[^\s#]\S*\s(.*\s)?(ssh|ecdsa|sk)-[a-z0-9@.-]+\s+[A-Za-z0-9+/=]{20,}(\s.*)?")


def list_sealed_files(folder: Path) -> list[str]:
    """List all files of a folder except its seal, as sorted relative paths."""
    paths = (path for path in folder.rglob("*") if path.is_symlink() or not path.is_dir())
    names = (path.relative_to(folder).as_posix() for path in paths)
    return sorted(name for name in names if name not in (MANIFEST, SIGNATURE))


def format_manifest(folder: Path) -> str:
    """Format the manifest of a folder: a line for each file, as ``sha256sum`` prints it.

    :raises UsageError: if a file cannot be read
    """
    names = list_sealed_files(folder)
    if odd := next((name for name in names if not name.isprintable()), ""):
        raise UsageError(f"{sanitize_line(folder / odd)}: has a name that no manifest can hold; rename it")
    return "".join(f"{digest(folder / name)}  {name}\n" for name in names)


def digest(path: Path) -> str:
    """Return the SHA-256 of a file. Raises UsageError if it cannot be read."""
    with explaining(path, "a seal needs every file"):
        return hashlib.sha256(files.read_regular(path)).hexdigest()


def seal(folder: Path, key: Path, namespace: str) -> None:
    """Write the manifest of a folder and sign it.

    :param namespace: the purpose of the signature
    :param key: private SSH key, or the public one of a key that the agent holds
    :raises UsageError: if it cannot be signed; no seal is left then
    """
    require_file(key, "name a key of SSH by --key")
    (folder / SIGNATURE).unlink(missing_ok=True)
    files.write_text(folder / MANIFEST, format_manifest(folder))
    words = ["-Y", "sign", "-f", str(key), "-n", namespace, str(folder / MANIFEST)]
    done = run_ssh_keygen(words)
    if done.returncode != 0 or not (folder / SIGNATURE).exists():
        (folder / MANIFEST).unlink()
        raise UsageError(f"{key}: cannot sign: {last_line(done.stderr)}; name a key of SSH by --key")


def find_signer(folder: Path, signers: Path, namespace: str) -> str:
    """Find who signed a folder.

    :param namespace: the required purpose of the signature
    :param signers: file of allowed signers (ssh-keygen(1)), with lines ``NAME KEY``
    :raises UsageError: if none of them signed it
    """
    signature = folder / SIGNATURE
    require_file(folder / MANIFEST, "it is not sealed")
    require_signers(signers)
    read_signing_key(folder)
    place = ["-s", str(signature), "-f", str(signers)]
    who = run_ssh_keygen(["-Y", "find-principals", *place])
    name = who.stdout.splitlines()[0] if who.returncode == 0 and who.stdout else ""
    words = ["-Y", "verify", *place, "-I", name, "-n", namespace]
    done = run_ssh_keygen(words, read_manifest_text(folder)) if name else who
    if done.returncode != 0:
        raise UsageError(f"{signature}: {last_line(done.stderr)}; not by a signer of {signers}")
    return name


def find_seal_fault(folder: Path, namespace: str) -> str:
    """Find why a signature does not fit its manifest, whoever signed; empty if it fits.

    :param namespace: the required purpose of the signature
    :raises UsageError: if a file cannot be read
    """
    require_file(folder / MANIFEST, "it is not sealed")
    words = ["-Y", "check-novalidate", "-n", namespace, "-s", str(folder / SIGNATURE)]
    done = run_ssh_keygen(words, read_manifest_text(folder))
    return last_line(done.stderr) if done.returncode != 0 else ""


def read_signing_key(folder: Path) -> str:
    """Read the fingerprint of the key that signed a folder, as ``ssh-keygen -l`` prints it.

    The signature itself is not checked.

    :raises UsageError: if there is no signature, or anything beside it
    """
    path = folder / SIGNATURE
    fix = "ask for the archive as it was signed"
    require_file(path, "it is not sealed")
    data = read_small(path, LARGEST_SIGNATURE, fix)
    armor = ARMOR.fullmatch(data)
    try:
        if armor is None:
            raise ValueError("no signature, or bytes before or behind it")
        blob = base64.b64decode(armor[1].replace(b"\n", b""), validate=True)
        if not blob.startswith(MAGIC):
            raise ValueError("no signature of ssh-keygen")
        (length,) = struct.unpack_from(">I", blob, len(MAGIC))
        key = blob[len(MAGIC) + 4 :][:length]
    except (ValueError, struct.error) as error:
        raise UsageError(f"{path}: holds {error}; {fix}") from None
    return format_fingerprint(key)


def format_fingerprint(key: bytes) -> str:
    """Format the fingerprint of a public key as ``ssh-keygen -l`` does."""
    return f"SHA256:{base64.b64encode(hashlib.sha256(key).digest()).decode().rstrip('=')}"


def find_fingerprint(key: Path) -> str:
    """Return the fingerprint of an SSH key, private or public. Raises UsageError if the file is not a key."""
    require_file(key, "name a key of SSH by --key")
    done = run_ssh_keygen(["-l", "-E", "sha256", "-f", str(key)])
    words = done.stdout.split()
    if done.returncode != 0 or len(words) < 2:
        raise UsageError(f"{key}: {last_line(done.stderr)}; name a key of SSH by --key")
    return words[1]


def require_signers(path: Path) -> None:
    """Check that a file of allowed signers has at least one signer.

    :raises UsageError: if it cannot be read, or names nobody
    """
    fix = "name lines NAME KEY by --signers"
    require_file(path, fix)
    lines = read_small(path, LARGEST_SIGNERS, fix).decode(errors="replace").splitlines()
    if not any(SIGNER.fullmatch(line) for line in lines):
        raise UsageError(f"{path}: has no line NAME KEY; {fix}")


def read_small(path: Path, most: int, fix: str) -> bytes:
    """Read a file of at most ``most`` bytes.

    :raises UsageError: if it is larger, or cannot be read
    """
    with explaining(path, fix), files.open_regular(path) as stream:
        data = stream.read(most + 1)
    if len(data) > most:
        raise UsageError(f"{path}: is larger than {most} bytes; {fix}")
    return data


def require_file(path: Path, fix: str) -> None:
    """Check that a path is a regular file: ``ssh-keygen`` would wait for a pipe and read a device endlessly.

    :raises UsageError: if it is not, or cannot be read
    """
    with explaining(path, fix):
        files.open_regular(path).close()


def find_changes(folder: Path) -> Iterator[str]:
    """Describe the differences from the manifest: a line per file that changed, is missing or was added."""
    for name, change in compare_manifest(folder):
        yield f"{name}: {change.value}"


class Change(str, Enum):
    """How a file differs from the manifest."""

    MISSING = "is missing"
    ADDED = "is not in the manifest"
    CHANGED = "was changed after it was signed"
    SWAPPED = "has the contents of another file of the manifest"


def compare_manifest(folder: Path) -> Iterator[tuple[str, Change]]:
    """Compare the files of a folder with its manifest. Yield the name and the change of those that differ.

    :raises UsageError: if the manifest or a file cannot be read
    """
    listed, here = read_manifest(folder), set(list_sealed_files(folder))
    codes = {code: name for name, code in listed.items()}
    for name in sorted({*listed, *here}):
        if name not in here:
            yield name, Change.MISSING
        elif name not in listed:
            yield name, Change.ADDED
        elif (code := digest(folder / name)) != listed[name]:
            yield name, Change.SWAPPED if code in codes else Change.CHANGED


def read_manifest(folder: Path) -> dict[str, str]:
    """Read the SHA-256 of each file, by its path.

    :raises UsageError: if the manifest cannot be read, or has anything but one line per file
    """
    lines = read_manifest_text(folder).split("\n")
    if len(lines) > MOST_FILES:
        raise UsageError(f"{folder / MANIFEST}: names more than {MOST_FILES} files; seal it anew")
    if not all(map(LINE.fullmatch, lines[:-1])) or lines[-1]:
        number = next((n for n, line in enumerate(lines, 1) if not LINE.fullmatch(line)), 1)
        raise UsageError(f"{folder / MANIFEST}: line {number}: is not a SHA-256 and a name; seal it anew")
    if odd := next((line for line in lines if not line.isprintable()), ""):
        raise UsageError(f"{folder / MANIFEST}: {odd[66:]!r} is not a name of a file; seal it anew")
    codes = {line[66:]: line[:64] for line in lines[:-1]}
    if len(codes) < len(lines) - 1:
        raise UsageError(f"{folder / MANIFEST}: names a file twice; seal it anew")
    return codes


def read_manifest_text(folder: Path) -> str:
    """Read the manifest of a folder. Raises UsageError if it cannot be read."""
    try:
        return files.read_text(folder / MANIFEST)
    except OSError as error:
        raise UsageError(f"{folder / MANIFEST}: {error.strerror}; it is not sealed") from None
    except ValueError:
        raise UsageError(f"{folder / MANIFEST}: is not text in UTF-8; seal it anew") from None


def compute_root(folder: Path) -> str:
    """Return the SHA-256 of the manifest, which stands for all files.

    :raises UsageError: if it cannot be read
    """
    return digest(folder / MANIFEST)


def run_ssh_keygen(words: list[str], given: str = "") -> subprocess.CompletedProcess[str]:
    """Run ``ssh-keygen``. Raises UsageError if it is not installed, or does not end."""
    try:
        return subprocess.run(
            ["ssh-keygen", *words], input=given, capture_output=True, text=True, check=False, timeout=SECONDS
        )
    except FileNotFoundError:
        raise UsageError("ssh-keygen: is not there; install OpenSSH 8.2 or newer") from None
    except subprocess.TimeoutExpired:
        raise UsageError(f"ssh-keygen: no end after {SECONDS} s; use a key of the agent") from None


def last_line(text: str) -> str:
    return (text.strip().splitlines() or ["it says nothing"])[-1]
