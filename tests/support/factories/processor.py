"""What ``/proc/cpuinfo`` says on machines of several kinds, and what each is called."""

import platform

X86 = """processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 1
model name	: AMD EPYC: 7763 64-Core \t
cpu MHz		: 2450.000

processor	: 1
model name	: another
"""
POWER = """processor	: 0
cpu		: POWER9, altivec supported
clock		: 3800.000000MHz
revision	: 2.3 (pvr 004e 1203)

processor	: 1
cpu		: POWER9, altivec supported

timebase	: 512000000
platform	: PowerNV
model		: 8335-GTX
machine		: PowerNV 8335-GTX
firmware	: OPAL
"""
ARM = """processor	: 0
BogoMIPS	: 243.75
Features	: fp asimd evtstrm aes
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
CPU revision	: 1

processor	: 1
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x1
CPU part	: 0xd40
"""
RISC_V = """processor	: 0
hart		: 2
isa		: rv64imafdc_zicsr
mmu		: sv39
uarch		: sifive,u74-mc
"""
UNKNOWN = f"unknown {platform.machine()}"

#: By name: the file, or None where there is none, and the processor's name.
SAMPLES = {
    "x86": (X86, "AMD EPYC: 7763 64-Core"),
    "power": (POWER, "cpu POWER9, altivec supported, machine PowerNV 8335-GTX"),
    "power alone": ("cpu\t: POWER8 (raw)\n", "cpu POWER8 (raw)"),
    "arm": (ARM, "CPU implementer 0x41, CPU architecture 8, CPU variant 0x3, CPU part 0xd0c"),
    "arm without a variant": (
        "CPU implementer: 0x41\nCPU variant\t:\nCPU part : 0xd40",
        "CPU implementer 0x41, CPU part 0xd40",
    ),
    "risc-v": (RISC_V, "uarch sifive,u74-mc, isa rv64imafdc_zicsr"),
    "risc-v of no name": ("isa\t: rv64imafdc\n", "isa rv64imafdc"),
    "long": (f"uarch : {'x' * 600}\nisa : rv64\n", f"uarch {'x' * 505}"),
    "no name": ("model name\t: \nprocessor\t: 0\nmachine : none\nCPU part : 1\n", UNKNOWN),
    "the middle of a line": ("my model name : x\n model name : y\nmodel name z : z\n", UNKNOWN),
    "empty": ("", UNKNOWN),
    "no file": (None, UNKNOWN),
}
