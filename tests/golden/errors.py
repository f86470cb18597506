"""Words that the command line refuses, and what it says."""

import shlex
from unittest import mock

from postprocess.base.errors import UsageError
from postprocess.main import build_parser
from tests.golden.stage import Stage, call
from tests.unit.postprocess.test_main import POSITIONALS, WRONG, parsers

#: Refused by an option, a request or a file that is not there, beside what the tests of the command line have.
MORE = """
run --bytes 8,x
run --program osu,x
run --program mpicos
nightli
status
retry
site status
site nw
run --cache evikt
run --trils 5
run brodcast
run --set-env x
report
report 20261121T090000Z-1
report latest
report 20261121
history nothing
drift
drift --since 2026-13-01
drift --site nowhere
alarms --mark real x y
alarms --mark maybe x y
export
export --case '*:bcast:*'
export --case ''
list --site nowhere
run --site nowhere
run --site ./nowhere.py
run --site site_configs
nightly --site nowhere
calibrate --site nowhere
setup --site nowhere
doctor --site nowhere
nightly --references nowhere
run --references /dev/null
run --environment a,b --set-env c:X=1
list --program osu --trials 5
nightly --json nowhere/x.json
nightly --json .
nightly --junit nowhere/x.xml
nightly --openmetrics nowhere/x.prom
nightly --confirm-after -1
nightly --confirm-after 100000
nightly --seconds-per-layout 0
run --failed nothing
run --peers 0
run --per-node x
run --partition
run --processes nobody
calibrate --at-most 0
calibrate --seconds 0
compare
compare a
compare a b --margin 0
compare a b --margin 3
compare a b --pairs 1
compare a a
compare --stored a b
compare --stored 2026-11-22 2026-11-23
compare --history a b
compare --again
confirm
confirm nothing
links --nodes 0
links --nodes-per-switch 0
papers
papers --paper nobody
papers --print rus
papers nothing
agree --boundaries --processes 2
agree --launches 2
agree --bytes few
agree --bytes 6
agree --bindings cobol
agree --bindings all --launches 2
agree --bindings all --bytes 12
agree --bindings all --routine bcast
agree --bindings all --site simulated
selftest --plants nobody
selftest --nights 0
references age --site nowhere
references propose
references propose --compare nowhere
references forget nothing
references recompute
site new ../x
site new a/b
site new local
site check nowhere
site try nowhere
offer check nowhere
offer compare nowhere
offer seal nowhere --key nowhere
offer sheet nowhere
offer references nowhere
offer run nowhere
offer new nowhere/rules.toml
accept nowhere
dossier sign nowhere --key nowhere --accept
dossier verify nowhere --signers nowhere
import nowhere
lint nowhere
lint ''
report --site ''
load nowhere
load postgresql://127.0.0.1:1/x
mirror check nowhere
where --environment nowhere mpicc
where --environment nowhere mpicost
"""


def play(stage: Stage) -> None:
    """Type every wrong line, and write down the exit status and what was said."""
    lines = [*WRONG, *map(shlex.split, MORE.strip().splitlines())]
    lines += [
        [*words, *POSITIONALS.get(words, []), "--json", "/dev/null/x.json"]
        for words, each in parsers(build_parser())
        if "--json" in each._option_string_actions
    ]
    told = []
    for words in lines:
        with mock.patch("postprocess.setup.take_inventory", begin):
            status, output, errors = call(stage.home, words)
        typed = shlex.join(words)[:80].encode("unicode_escape").decode()
        told.append(f"$ plumbline {typed}\n{output}{errors}exit status {status}\n")
    stage.keep("words.txt", "\n".join(told))


def begin(*_: object, **__: object) -> None:
    """Take the place of the first thing that a session does."""
    raise UsageError("(nothing is wrong: the command begins)")
