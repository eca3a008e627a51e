#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Run the tests that need a machine of their own (`make test-vm` and the like) in guests with
the NICs that they test, several guests side by side. The last line says how many passed.
build/vm/ has the output of the guests.

    run.py                    one guest with one model of NIC, the tests marked `quick`
    run.py --all              all tests, as `make test-vm-all`
    run.py WORDS              the tests of all that WORDS choose, as pytest's -k does
    run.py --package [WORDS]  the tests of the package, systemd and the manual instead
    run.py --part NAME [TESTS]  one guest with its own tests, or with TESTS, in pytest's words; build first
    run.py --list --all       print the names of the parts of --all; or of --package
    run.py --lab [NAME]       `make lab-vm`: a scenario of frr-config, or the list of them
    run.py --lab-uml NAME     `make lab-uml`: the same with user-mode-linux (uml.py)
    run.py --uml TESTS        some tests that need no NICs, with user-mode-linux (uml.py); build first
    run.py --topotests WORDS  `make topotests-vm`: FRR's topotests, in the words of their run.py
    run.py --topotests-uml WORDS  the same with user-mode-linux (uml.py)
    run.py --fetch            download the guests' kernel, for later runs without a network
"""

import contextlib
import functools
import glob
import os
import re
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import guest  # noqa: E402
import uml  # noqa: E402
from lib import beside  # noqa: E402
from lib.links import FAR_SLOT, PORT_SLOT, far_mac, port_mac  # noqa: E402

ROOT = os.path.dirname(os.path.dirname(guest.HERE))
TOPOTESTS_S = 24 * 3600  # tests/topotests/run.py limits each module
LAB_S = 2400  # a scenario of four boxes, while other programs use most of the CPUs
NO_TESTS = 5  # pytest: no test was selected
NAMES = 4  # wires of the device under test
# A guest may get little CPU, so its tests wait four times as long (lib/wait.py). With CI pytest
# prints whole reasons, whatever the width of the terminal is.
ENVIRONMENT = "CI=true FDP_PATIENCE=4 FDP_BUILT=1" + "".join(
    # Sizes for a run by hand.
    f" {word}={int(os.environ[word])}" for word in ("FIRST_SEED", "N_ROUTES", "N_VLANS", "REPEAT", "ROUTES", "SEEDS") if os.environ.get(word)
)
PYTEST = (
    f"{ENVIRONMENT} /usr/bin/python3 -m pytest --no-header -p no:cacheprovider -q -rfEs "
    "--durations=8 --durations-min=5"
)

# The one part of `make test-vm`: forwarding, links and queues of one model of NIC, with VLANs
# and VRFs on it.
SMOKE = "smoke"

# The parts whose guest installs the package: `make test-vm-package`.
PACKAGED = ("service", "manual")
# VIRTIO has two queue pairs and a hash over them. The other models have one pair, or no hash in
# QEMU.
ONE_PAIR = "disable-legacy=on,iommu_platform=on,ats=on"
VIRTIO = f",mq=on,vectors=6,rss=on,{ONE_PAIR}"
# The rings have room for all frames that may wait in both queues of a TAP. If the ring that RSS
# chooses is full, QEMU stops reading the TAP's queue, and does not start again when the ring
# has room.
BUSY = f",rx_queue_size=1024{VIRTIO}"
# Model: QEMU's arguments, DPDK's driver, CPUs that forward, MiB of packet memory.
MODELS = {
    "e1000e": ("", "net_e1000_em", "[1]", 96),
    "virtio-net-pci": (BUSY, "net_virtio", "[0, 1]", 192),
    # The driver fills two rings of buffers for each queue.
    "vmxnet3": ("", "net_vmxnet3", "[1]", 192),
}


def wires(model, more, last=""):
    """Return shell text and QEMU's arguments for the wires. A wire is a bridge of two TAPs: one
    has a NIC of `model` for the port, the other a NIC for the kernel at the far end. The last
    port has a NIC of the model `last`, if given."""
    multi = "mq=on" in more
    setup = [
        "sysctl -qw net.ipv6.conf.default.disable_ipv6=1",
        # Netfilter on a bridge drops packets that a wire passes, such as those with a wrong
        # checksum.
        "for x in /proc/sys/net/bridge/bridge-nf-call-ip*; do [ ! -e $x ] || echo 0 >$x; done",
    ]
    argv = []
    for n in range(NAMES):
        mine, queues = f"{model}{{}}{more}", ",queues=2" if multi else ""
        if last and n == NAMES - 1:
            mine, queues = f"{last}{{}}", ""
        setup += [
            f"ip link add b{n} type bridge mcast_snooping 0",
            f"ip tuntap add p{n} mode tap {'multi_queue' if queues else ''}",
            f"ip tuntap add f{n} mode tap",
            *(f"ip link set {x}{n} mtu 9000 master b{n} up" for x in "pf"),
            # A bridge does not forward LACP (IEEE 802.1D, 7.12.6), but a wire does.
            *(f"ip link set {x}{n} type bridge_slave group_fwd_mask 4" for x in "pf"),
            f"ip link set b{n} up",
        ]
        tap = "vnet_hdr=off,script=no,downscript=no,vhost=off"
        argv += [
            "-netdev", f"tap,id=p{n},ifname=p{n},{tap}{queues}",
            "-netdev", f"tap,id=f{n},ifname=f{n},{tap}",
            "-device", mine.format(f",id=port{n},netdev=p{n},mac={port_mac(n)},"
                                   f"addr={PORT_SLOT + n:#x}"),
            # ctrl_vlan=off removes the VLAN filter of QEMU, which drops all tags by default.
            # The kernel runs LACP only with known speed and duplex, which virtio does not
            # report by default.
            "-device", f"virtio-net-pci,id=far{n},netdev=f{n},mac={far_mac(n)},"
            f"addr={FAR_SLOT + n:#x},ctrl_vlan=off,speed=1000,duplex=full",
        ]  # fmt: skip
    return "\n".join(setup), argv


def in_guest(kernel, name, command, *args, **more):
    """Run text for bash in a guest, in the project's directory. Return its exit code."""
    log = f"{ROOT}/build/vm/{name}.log"
    return guest.run(kernel, log, f"cd {ROOT}\n{command}\n", *args, **more)


def nics(kernel, model, tests, name=None):
    """Run tests with one model of NIC. Return pytest's exit code."""
    more, driver, cores, mib = MODELS[model]
    network, devices = wires(model, more)
    words = f"FDP_LINKS=nics FDP_DRIVER={driver} FDP_CORES='{cores}' FDP_MIB={mib}"
    return in_guest(kernel, name or model, f"{words} {PYTEST} {tests}", devices, network)


def bonds(kernel, tests):
    """Run tests with NICs that have two queue pairs and a hash over them, and with one NIC of a
    model that cannot be in a bond. Return pytest's exit code."""
    network, devices = wires("virtio-net-pci", BUSY, last="e1000e")
    command = f"FDP_LINKS=nics FDP_CORES='[0, 1]' FDP_MIB=192 {PYTEST} {tests}"
    return in_guest(kernel, "bonds", command, devices, network)


# A NIC with one lane in a slot of sixteen. No test forwards by it.
SLOT = "-device pcie-root-port,id=sixteen,chassis=1,x-speed=8,x-width=16 -device e1000e,bus=sixteen"


def two_nodes(kernel, name, tests, seconds=1200):
    """Run tests on a machine of two NUMA nodes with one CPU and half of the memory each. Its
    only NIC is one for the doctor to examine. Its kernel has every kind of link."""
    devices = SLOT.split()
    for node in range(2):
        devices += [
            "-object", f"memory-backend-ram,id=mem{node},size={guest.MIB // 2}M",
            "-numa", f"node,nodeid={node},cpus={node},memdev=mem{node}",
        ]  # fmt: skip
    return in_guest(kernel, name, f"{PYTEST} {tests}", devices, seconds=seconds)


# The configuration of a dataplane on the host, in QEMU's network namespace, with a port for
# each side.
HOSTED = """\
ports:
  - {{tap: vm0, device: "net_vhost,iface={dir}/0.sock"}}
  - {{tap: vm1, device: "net_vhost,iface={dir}/1.sock"}}
cores: [0]
control-socket: {dir}/control.sock
metrics: 0.0.0.0:9620
memory: {{size-mib: 64}}
"""


def hosted(kernel, name, tests):
    """Run tests with two NICs that are vhost-user ports of a dataplane beside QEMU. The
    dataplane ends with QEMU."""
    with tempfile.TemporaryDirectory(dir=kernel.dir) as there:
        config = f"{there}/config.yaml"
        with open(config, "w", encoding="ascii") as file:
            file.write(HOSTED.format(dir=there))
        network = f"""ip link set lo up
sysctl -qw net.ipv4.ip_forward=1
setpriv --pdeathsig KILL {ROOT}/build/release/fpm-dataplane -c {config} >&2 &
n=0
until [ -S {there}/control.sock ]; do sleep 0.1; n=$((n + 1)); [ $n -lt 600 ]; done
ip addr add 192.0.2.1/26 dev vm0
ip addr add 192.0.2.65/26 dev vm1"""
        devices = [
            # The dataplane maps the guest's memory.
            "-object", f"memory-backend-memfd,id=mem,size={guest.MIB}M,share=on",
            "-machine", "memory-backend=mem",
        ]  # fmt: skip
        for n in range(2):
            devices += [
                "-chardev", f"socket,id=vhost{n},path={there}/{n}.sock",
                "-netdev", f"vhost-user,id=n{n},chardev=vhost{n}",
                # Without KVM QEMU 7.2 ends if such a NIC has MSI-X interrupts.
                "-device", f"virtio-net-pci,netdev=n{n},mac={far_mac(n)},vectors=0",
            ]  # fmt: skip
        # Four routers in one guest take minutes to start.
        return in_guest(kernel, name, f"{PYTEST} {tests}", devices, network, seconds=2400)


def packaged(kernel, name, model, more, cpus, tests):
    """Run tests with the package, under systemd. Return pytest's exit code."""
    network, devices = wires(model, more)
    words = f"FDP_LINKS=nics FDP_DEB='{ROOT}/build/deb/fpm-dataplane_*.deb'"
    command = f"{words} {PYTEST} {tests}"
    return in_guest(kernel, name, command, devices, network, systemd=True, cpus=cpus)


def unprotected(kernel, name, tests):
    """Run tests without an IOMMU and with QEMU's default virtio, under systemd, whose unit
    forbids the access that such NICs need."""
    network, devices = wires("virtio-net-pci", "")
    command = f"FDP_LINKS=nics FDP_DRIVER=net_virtio FDP_MIB=96 {PYTEST} {tests}"
    return in_guest(kernel, name, command, devices, network, systemd=True, iommu=False)


def all_parts(kernel):
    """Return {name: (function that runs the part, its tests in pytest's words)}, the longest
    first."""
    some = functools.partial
    return {
        # Scenarios that this machine's own kernel may not support.
        "scenarios": (
            some(hosted, kernel, "scenarios"),
            "tests/vm/test_vhost_user.py tests/system/test_scenarios.py -m guest",
        ),
        "links": (
            some(two_nodes, kernel, "links", seconds=2400),
            "tests/vm/test_vlan.py tests/vm/test_vlan_moved.py tests/vm/test_vrf.py tests/vm/test_vrf_leak.py "
            "tests/vm/test_vrf_local.py tests/vm/test_vrf_deleted.py "
            "tests/vm/test_numa.py tests/vm/test_pcie.py tests/vm/test_neigh_full.py tests/vm/test_mpls.py "
            "tests/vm/test_mpls_frr.py tests/vm/test_6vpe.py tests/vm/test_mpls_vrf.py tests/vm/test_tunnel.py tests/vm/test_tunnel_ecmp.py tests/vm/test_srv6.py "
            "tests/vm/test_vrf_many.py tests/vm/test_links_full.py tests/vm/test_vxlan_vlans.py tests/vm/test_evpn.py "
            "tests/vm/test_psample.py tests/vm/test_ipvs.py "
            "tests/system/test_bfd_links.py",
        ),
        # This is not in "links", so that no guest runs for too long.
        "twins": (
            some(two_nodes, kernel, "twins"),
            "tests/vm/test_srv6_like_linux.py tests/vm/test_tunnel_like_linux.py tests/vm/test_tunnel_restart.py tests/vm/test_mpls_vrf_restart.py",
        ),
        "random": (some(two_nodes, kernel, "random", seconds=2400), "tests/vm/test_links_random.py"),
        "service": (
            some(packaged, kernel, "service", "e1000e", "", 2),
            "tests/vm/test_service.py tests/vm/test_upgrade.py",
        ),
        "manual": (
            some(packaged, kernel, "manual", "virtio-net-pci", VIRTIO, 3),
            "tests/vm/test_manual.py",
        ),
        SMOKE: (
            some(nics, kernel, "e1000e", name=SMOKE),
            # Leave out the tests of VLAN tags by the dataplane ("off"), because they need a second
            # router and a third of the time. Unit programs test these tags.
            "tests/vm/test_nic.py tests/vm/test_vlan.py tests/vm/test_vrf.py -m quick -k 'not off'",
        ),
        "bonds": (some(bonds, kernel), "tests/vm/test_bond.py"),
        "noiommu": (some(unprotected, kernel, "noiommu"), "tests/vm/test_noiommu.py"),
        # VLAN tags by the NIC, and by the dataplane on the same NIC.
        "tags": (some(nics, kernel, "e1000e", name="tags"), "tests/vm/test_vlan.py tests/vm/test_vlan_moved.py"),
        **{
            m: (some(nics, kernel, m), "tests/vm/test_nic.py tests/vm/test_nic_restart.py")
            for m in MODELS
        },
        **{
            f"kept-{m}": (some(nics, kernel, m, name=f"kept-{m}"), "tests/vm/test_nic_kept.py")
            for m in MODELS
        },
    }


def chosen_parts(which):
    """Return {name: its tests in pytest's words} of a run: "" for the smoke test, --package, or
    --all for all parts without the package's."""
    parts = {name: tests for name, (_, tests) in all_parts(None).items()}
    smoke = {SMOKE: parts.pop(SMOKE)}
    return smoke if which == "" else {n: t for n, t in parts.items() if (n in PACKAGED) is (which == "--package")}


def left_out():
    """Return the parts that `make test-vm` does not run, as text."""
    return (
        f"not run here: {', '.join(chosen_parts('--all'))} (make test-vm-all); "
        f"{', '.join(PACKAGED)} (make test-vm-package)"
    )


def compile_tests():
    """Compile the tests to byte code for Python and pytest. A guest uses this machine's files,
    and compiling takes it seconds."""
    files = sorted({w for tests in chosen_parts("--all").values() for w in tests.split() if "/" in w})
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    for argv in (["-m", "compileall", "-q", "tests"],
                 ["-m", "pytest", "-q", "-p", "no:cacheprovider", "--collect-only", *files]):  # fmt: skip
        words = ["/usr/bin/python3", *argv]
        subprocess.run(words, cwd=ROOT, env=environment, capture_output=True, check=False)


def none_chosen(tests):
    """Return True if pytest would select no test. This takes less time than a boot."""
    command = f"{PYTEST} --collect-only {tests}"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, check=False)
    return done.returncode == NO_TESTS


def jobs_for(parts, choose):
    """Return the jobs: the guests, and the package if one of them needs it."""
    jobs = []
    for name, tests in parts.items():
        needs = "package" if name in PACKAGED else None
        if choose and none_chosen(f"{tests} {choose}"):
            continue
        argv = [sys.executable, os.path.abspath(__file__), "--part", name, f"{tests} {choose}"]
        jobs.append(beside.Job(name, argv, needs))
    if any(job.needs for job in jobs):
        # Debug symbols take a quarter of the time, and no test needs them.
        more = {"DEB_BUILD_OPTIONS": "noautodbgsym"}
        jobs.insert(0, beside.Job("package", ["make", "--no-print-directory", "deb"], more=more))
    return jobs


def how_it_went(name, code):
    """Return {"passed": n, "failed": n, ...} from pytest's last lines in a guest's log."""
    found, text = {}, ""
    with contextlib.suppress(FileNotFoundError):
        with open(f"{ROOT}/build/vm/{name}.log", encoding="utf-8", errors="replace") as file:
            text = re.sub(r"\033\[[0-9;]*m", "", file.read())
    for line in re.findall(r"^.*\d+ \w+.* in [0-9.]+s\b.*$", text, re.M):
        for n, what in re.findall(r"(\d+) (passed|failed|error|skipped)", line):
            what = "failed" if what == "error" else what
            found[what] = found.get(what, 0) + int(n)
    if code not in (0, NO_TESTS) and "failed" not in found:
        found["failed"] = 1  # the guest itself
    return found


def stood_still(name):
    """Return True if the guest's kernel reported that one of its CPUs did not run. Then timers
    and interrupts were lost, and any test may fail because of it."""
    with contextlib.suppress(FileNotFoundError):
        with open(f"{ROOT}/build/vm/{name}.log.console", encoding="utf-8", errors="replace") as file:
            return re.search(r"rcu: INFO: .*detected stall", file.read()) is not None
    return False


def run_tests(words="", which=""):
    """Run all parts of a run, with the tests that `words` choose. Return the exit code."""
    start = time.monotonic()
    choose = f"-k '{words}'" if words else ""
    what = target(which)
    parts = chosen_parts(which)
    for old in glob.glob(f"{ROOT}/build/vm/*.log*"):
        os.unlink(old)
    compile_tests()
    jobs = jobs_for(parts, choose)
    if not jobs:
        print(f"{what}: no test is called {words}; the others: make {target(OTHER[which])}")
        return 2
    said, total = [], dict.fromkeys(("passed", "failed", "skipped"), 0)
    for job in beside.run(jobs, slots(), ROOT):
        job.show()
        if job.name in parts and job.code is not None:
            found = how_it_went(job.name, job.code)
        else:
            found = {"failed": 1} if job.code != 0 else {}
        for key, n in found.items():
            total[key] += n
        how = ", ".join(f"{n} {key}" for key, n in found.items()) or "made"
        if found.get("failed") and stood_still(job.name):
            how += f", and a CPU of its guest stood still (build/vm/{job.name}.log.console)"
        if job.code is None:
            how = f"not run: no {', '.join(job.needs)}"
        said.append(f"{job.name} {how} ({job.took:.0f} s, {job.cpu:.0f} of CPU)")
    print("guests: " + "; ".join(said))
    print(summary(what, total, time.monotonic() - start, which))
    return 1 if total["failed"] or not total["passed"] else 0


def target(which):
    """Return the Makefile's target of a run."""
    return f"test-vm{which.replace('--', '-')}"


OTHER = {"--all": "--package", "--package": "--all"}


def summary(what, total, took, which):
    """Return the last line."""
    counts = ", ".join(f"{n} {key}" for key, n in total.items() if n or key == "passed")
    line = f"{what}: {counts} in {took:.0f} s"
    return line if which != "" else f"{line}; {left_out()}"


def slots():
    """Return the number of guests at a time: one a core, if there is memory for them, and four
    at most, because then the longest guest takes the whole time."""
    return max(1, min(len(os.sched_getaffinity(0)), guest.memory_mib() // guest.NEEDS_MIB, 4))


def run_part(kernel, name, tests=None):
    """Run one guest, with all its tests and a last line as a run of several if `tests` is None. Return its
    exit code."""
    parts = all_parts(kernel)
    if name not in parts:
        print(f"run.py: there is no part {name}; there are {', '.join(parts)}")
        return 2
    part, own = parts[name]
    if tests is not None:
        return part(tests)
    start, code = time.monotonic(), part(own)
    found = how_it_went(name, code)
    if found.get("failed") and stood_still(name):
        print(f"a CPU of the guest stood still (build/vm/{name}.log.console)")
    total = {key: found.get(key, 0) for key in ("passed", "failed", "skipped")}
    print(summary(f"test-vm-{name}", total, time.monotonic() - start, "--part"))
    return code


def lab_command(name, there):
    """Return the text for a shell that runs a scenario, which appends what it measures to the file `there`."""
    return f"{ENVIRONMENT} ONCE=1 MESH_JSON={there} /usr/bin/python3 tests/lab/scenario.py {name}"


def run_lab_uml(name):
    """Run a scenario of frr-config in user-mode-linux. Return its exit code. What the scenario measures is
    appended to the file of the environment variable MESH_JSON."""
    path = os.path.abspath(os.environ.get("MESH_JSON") or "/dev/null")
    shares = [os.path.dirname(path)] if os.environ.get("MESH_JSON") else []
    return in_uml("lab-uml", f"cd {ROOT}\n{lab_command(name, path)}\n", shares)


def run_lab(kernel, name):
    """Run a scenario of frr-config in a guest. Return its exit code. What the scenario measures is
    appended to the file of the environment variable MESH_JSON of this machine."""
    there = "/tmp/mesh.jsonl"
    command = lab_command(name, there)
    path = os.environ.get("MESH_JSON")
    if not path:
        return in_guest(kernel, "lab", command, seconds=LAB_S)
    code = in_guest(kernel, "lab", f"{command}\ncode=$?\ncat {there}\nexit $code", seconds=LAB_S)
    with open(f"{ROOT}/build/vm/lab.log", encoding="utf-8") as log, open(path, "a", encoding="utf-8") as file:
        file.writelines(line for line in log if line.startswith("{"))
    return code


def topotests_command(words, kept):
    """Return the text for a shell that runs FRR's topotests. Tests skip LDP and VPNs without the modules of
    MPLS, and load none themselves."""
    command = f"{ENVIRONMENT} /usr/bin/python3 tests/topotests/run.py --kept {kept} {words}"
    return f"cd {ROOT}\nmodprobe -a mpls_router mpls_iptunnel\n{command}\n"


def kept_topotests(name):
    """Return the directory for the results of a machine, and make it."""
    kept = f"{ROOT}/build/topotests/{name}"
    os.makedirs(kept, exist_ok=True)
    return kept


def run_topotests(kernel, words):
    """Run FRR's topotests in a guest. Return their exit code. The guest writes their results into this
    machine's directory, so that a later run need not repeat those with the kernel."""
    kept = kept_topotests("vm")
    command = f"{guest.mount_line(0, kept)}\n{topotests_command(words, kept)}"
    return in_guest(kernel, "topotests", command, seconds=TOPOTESTS_S, shares=[kept])


def in_uml(what, command, shares=()):
    """Run text for bash with a kernel that is a process of this machine. Return its exit code."""
    if reason := uml.why_not():
        print(f"{what}: {reason}")
        return 1
    directory = f"{ROOT}/build/vm/uml"
    uml.fetch(directory)
    return uml.run(directory, command, TOPOTESTS_S, shares)


def run_topotests_uml(words):
    """Run FRR's topotests in user-mode-linux. Return their exit code."""
    kept = kept_topotests("uml")
    return in_uml("topotests-uml", topotests_command(words, kept), [kept])


def can_run(what, kernel):
    """Return True if guests can run here and there is a kernel. Otherwise print the reason on a
    line that begins with `what`. A fault of the project or of a guest is never such a reason;
    it is a failure."""
    reason = guest.why_not()
    try:
        if reason is None:
            kernel.fetch()
    except guest.GuestError as error:
        reason = f"no kernel for the guest: {error}"
    if reason:
        print(f"{what}: {reason}")
    return reason is None


def no_scenario(words):
    """Print the list of scenarios, or that there is none of that name, before any download or
    boot. Return the exit code, or None if the scenario exists."""
    from lab import scenario  # its claims need modules that no other part needs

    makes = "make lab-vm S=NAME proves one of these in a virtual machine, and leaves nothing:"
    return scenario.not_one(words, makes)


def main(words):
    """Run the command line. Return the exit code."""
    if words[:1] == ["--list"]:
        print(*chosen_parts(words[1]), sep="\n")
        return 0
    if words[:1] in (["--lab"], ["--lab-uml"]):
        code = no_scenario(words[1:])
        if code is not None:
            return code
    which = words.pop(0) if words[:1] in (["--all"], ["--package"]) else ""
    if which == "" and words and not words[0].startswith("--"):
        which = "--all"  # the words select from all tests
    kernel = guest.Kernel(f"{ROOT}/build/vm")
    try:
        if words[:1] == ["--fetch"]:
            kernel.fetch()
            return 0
        if words[:1] == ["--part"]:
            # In a run of all parts the kernel is prepared before, and other guests read it now.
            if not kernel.is_there():
                if not can_run("run.py", kernel):
                    return 1
                kernel.prepare()
            return run_part(kernel, *words[1:])
        if words[:1] == ["--lab"]:
            if not can_run("lab-vm", kernel):
                return 1
            kernel.prepare()
            return run_lab(kernel, words[1])
        if words[:1] == ["--topotests"]:
            if not can_run("topotests-vm", kernel):
                return 1
            kernel.prepare()
            return run_topotests(kernel, " ".join(words[1:]))
        if words[:1] == ["--lab-uml"]:
            return run_lab_uml(words[1])
        if words[:1] == ["--topotests-uml"]:
            return run_topotests_uml(" ".join(words[1:]))
        if words[:1] == ["--uml"]:
            return in_uml("run.py", f"cd {ROOT}\n{PYTEST} -s {' '.join(words[1:])}\n")
        if not can_run(f"{target(which)}: skipped", kernel):
            return 0
        kernel.prepare()
    except guest.GuestError as error:
        print(f"{target(which)}: failed: {error}")
        return 1
    return run_tests(" ".join(words), which)


if __name__ == "__main__":
    beside.end_on_signals()
    sys.exit(main(sys.argv[1:]))
