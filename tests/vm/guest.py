# SPDX-License-Identifier: BSD-3-Clause
"""A virtual machine for one command: QEMU without KVM, Debian's kernel, unpacked and not
installed, and this machine's root file system; the guest changes only a copy in its memory.
Build, FRR and pytest run in it as they are. The guest has features that the machine's own
kernel may lack: PCI NICs behind an IOMMU, and systemd as process 1.

All files are below one directory. QEMU runs in a network namespace without a name, and its
TAPs and bridges end with it. QEMU ends with the process that started it, however that ends.
"""

import contextlib
import ctypes
import lzma
import mmap
import os
import re
import shutil
import signal
import socket
import statistics
import struct
import subprocess
import tempfile
import time

HERE = os.path.dirname(os.path.abspath(__file__))
PR_SET_PDEATHSIG = 1
MIB = 2560  # of memory
BOOT_S = 300  # usually four to forty seconds while other programs run
NEEDS_MIB = MIB + 512  # QEMU itself, and the cache of this machine's files
# Features that are slow in TCG and useless to a test are off: string moves by octets, page
# tables of five levels, keys and checks for each access.
CPU = "max,erms=off,la57=off,smap=off,smep=off,pku=off,pks=off"
# Programs have the same addresses in all processes, so TCG translates their code once.
KERNEL_WORDS = "mitigations=off norandmaps init_on_alloc=0"
# systemd's generators and units that no test needs and that take the guest seconds.
GENERATORS = "/usr/lib/systemd/system-generators"
MASKED = """modprobe@configfs.service modprobe@dm_mod.service modprobe@drm.service
modprobe@efi_pstore.service modprobe@fuse.service modprobe@loop.service
sys-fs-fuse-connections.mount sys-kernel-config.mount systemd-binfmt.service
proc-sys-fs-binfmt_misc.automount systemd-update-utmp.service systemd-journal-flush.service
systemd-modules-load.service systemd-pstore.service apparmor.service ldconfig.service
systemd-journal-catalog-update.service""".split()
# The commands by which run.py makes wires.
WIRE = """ip tuntap add t0 mode tap multi_queue
ip link add b0 type bridge
ip link set t0 master b0"""
PROGRAMS = ("qemu-system-x86_64", "busybox", "cpio", "modprobe", "zstd")
# The modules of the initramfs: those for the root file system. The guest loads all others later.
MODULES = ("9p", "9pnet_virtio", "overlay", "virtio_pci")
_libc = ctypes.CDLL(None)
RDTSC = bytes.fromhex("0f31 48c1e220 4809d0 c3")  # rdtsc; shl rdx, 32; or rax, rdx; ret


class GuestError(Exception):
    """The guest did not start, or did not end as expected."""


class Kernel:
    """A Debian kernel in `directory`: vmlinux, modules and an initramfs."""

    def __init__(self, directory):
        self.dir = directory
        self.vmlinux = os.path.join(directory, "vmlinux")
        self.initrd = os.path.join(directory, "initrd")

    def is_there(self):
        """Return True if the kernel is prepared."""
        return os.path.exists(self.vmlinux) and os.path.exists(self.initrd)

    def fetch(self):
        """Download Debian's package, unless it is unpacked. Raise GuestError if that fails."""
        os.makedirs(self.dir, exist_ok=True)
        if not os.path.exists(self.vmlinux) and self._package() is None:
            self._download()

    def prepare(self):
        """Unpack the downloaded package and make the initramfs again."""
        if not os.path.exists(self.vmlinux):
            self._unpack(self._package())
        self._pack_initrd()

    @property
    def modules(self):
        """Return the directory with the kernel's modules."""
        (version,) = os.listdir(f"{self.dir}/root/lib/modules")
        return f"{self.dir}/root/lib/modules/{version}"

    def _package(self):
        found = [f for f in os.listdir(self.dir) if f.endswith(".deb")]
        return os.path.join(self.dir, found[0]) if found else None

    def _download(self):
        said = output(["apt-cache", "depends", "linux-image-amd64"])
        package = re.search(r"Depends: (linux-image-\S+)", said).group(1)
        with tempfile.TemporaryDirectory(dir=self.dir) as here:
            # Run as root, because apt's own user may not write here.
            argv = ["apt-get", "-q", "-o", "APT::Sandbox::User=root", "download", package]
            output(argv, here)
            (deb,) = os.listdir(here)
            os.rename(f"{here}/{deb}", f"{self.dir}/{deb}")

    def _unpack(self, deb):
        root = f"{self.dir}/root"
        shutil.rmtree(root, ignore_errors=True)
        output(["dpkg-deb", "-x", deb, root])
        if not os.path.exists(f"{root}/lib"):
            os.symlink("usr/lib", f"{root}/lib")  # Debian 13's package has /usr/lib only
        (image,) = [f for f in os.listdir(f"{root}/boot") if f.startswith("vmlinuz")]
        # A packed kernel would take seconds to unpack itself without KVM.
        with open(f"{root}/boot/{image}", "rb") as file:
            plain = _unpacked(file.read())
        output(["depmod", "-b", root, os.path.basename(self.modules)])
        os.unlink(deb)
        with open(self.vmlinux + ".new", "wb") as file:
            file.write(plain)
        os.rename(self.vmlinux + ".new", self.vmlinux)

    def _pack_initrd(self):
        with tempfile.TemporaryDirectory(dir=self.dir) as tree:
            for name in "bin proc sys dev mods host rw new".split():
                os.mkdir(os.path.join(tree, name))
            shutil.copy(shutil.which("busybox"), f"{tree}/bin/busybox")
            shutil.copy(f"{HERE}/init.sh", f"{tree}/init")
            os.chmod(f"{tree}/init", 0o755)
            for n, path in enumerate(self._files_of(MODULES)):
                # Debian 13's modules are packed, and busybox may not unpack them.
                name = os.path.basename(path).removesuffix(".xz")
                with (lzma.open if path.endswith(".xz") else open)(path, "rb") as module:
                    with open(f"{tree}/mods/{n:02}-{name}", "wb") as file:
                        file.write(module.read())
            names = output(["find", ".", "-print0"], tree)
            with open(self.initrd, "wb") as out:
                argv = ["cpio", "--null", "-o", "-H", "newc", "--quiet"]
                subprocess.run(argv, input=names.encode(), stdout=out, cwd=tree, check=True)

    def _files_of(self, modules):
        """Return the paths of these modules and of those they need, in the order to load
        them."""
        argv = ["modprobe", "-d", f"{self.dir}/root", "-S", os.path.basename(self.modules)]
        found = {}
        for module in modules:
            said = output([*argv, "-n", "--show-depends", module])
            found |= dict.fromkeys(re.findall(r"^insmod (\S+)", said, re.M))
        return list(found)


def why_not():
    """Return one sentence that says why no guest can run here, or None."""
    if os.uname().machine != "x86_64":
        return "the guest is an x86-64 machine"
    if os.geteuid() != 0:
        return "the guest needs root (network namespaces, TAPs)"
    missing = [p for p in PROGRAMS if shutil.which(p) is None]
    if missing:
        return f"not installed: {', '.join(missing)}"
    done = subprocess.run(["unshare", "--net", "sh", "-ec", WIRE], capture_output=True, text=True)
    if done.returncode != 0:
        return f"no network namespace, TAP or bridge for its wires: {done.stderr.strip()}"
    if memory_mib() < NEEDS_MIB:
        return f"the guest needs {NEEDS_MIB} MiB of memory, {memory_mib()} are there"
    return None


def tsc_khz():
    """Return the frequency of this machine's TSC, which is that of a guest without KVM. A guest that
    measures it at boot while it waits for a CPU gets a wrong result, and its clock is several times
    too fast (Linux: Documentation/admin-guide/kernel-parameters.txt, tsc_early_khz)."""
    with mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC) as page:
        page.write(RDTSC)
        code = ctypes.c_char.from_buffer(page)
        ticks = ctypes.CFUNCTYPE(ctypes.c_uint64)(ctypes.addressof(code))
        found = []
        for _ in range(7):
            begin, since = ticks(), time.monotonic_ns()
            time.sleep(0.02)
            found.append((ticks() - begin) * 10**6 // (time.monotonic_ns() - since))
        del code
    return int(statistics.median(found))


def memory_mib():
    """Return the memory that this machine has available."""
    with open("/proc/meminfo", encoding="ascii") as file:
        return int(re.search(r"^MemAvailable: *(\d+) kB", file.read(), re.M)[1]) >> 10


def run(
    kernel,
    log,
    command,
    devices=(),
    network="",
    systemd=False,
    seconds=1200,
    cpus=2,
    hugepages=256,
    iommu=True,
    shares=(),
):
    """Boot, run `command` (text for bash) as root and return its exit code. Its output goes to
    stdout and to the file `log`, the kernel's messages to `log`.console, QEMU's messages to
    `log`.qemu.

    devices   more arguments for QEMU
    network   text for sh in QEMU's network namespace, before QEMU starts
    systemd   systemd is process 1, and the command is its service
    iommu     the guest has an IOMMU, and the kernel uses it
    shares    directories of this machine that the guest changes: the command mounts each by
              `mount_line`
    seconds   limit for the command, which ends a command that hangs; no test should need it

    Raise GuestError if the guest ends early, needs `seconds` and a minute, or needs more than
    BOOT_S to boot.
    """
    with contextlib.ExitStack() as undo:
        shared = undo.enter_context(tempfile.TemporaryDirectory(dir=kernel.dir))
        shutil.copy(f"{HERE}/guest.sh", shared)
        files = {"command": command, "modules": kernel.modules, "seconds": str(seconds)}
        files["init"], more = "/bin/bash /run/vm/guest.sh", ""
        if systemd:
            files["init"] = "/lib/systemd/systemd --unit=vm.target"
            more = "systemd.show_status=no"
            _units(shared)
        for name, text in files.items():
            with open(f"{shared}/{name}", "w", encoding="utf-8") as file:
                file.write(text + "\n")
        # The guest has one end of the pair, and QEMU's monitor the other.
        ends = socket.socketpair()
        for end in ends:
            undo.callback(end.close)
        argv = [
            "qemu-system-x86_64", *f"-accel tcg,thread=multi -cpu {CPU}".split(),
            # Without a split irqchip QEMU offers no interrupt remapping to the IOMMU.
            *"-machine q35,kernel-irqchip=split -nodefaults -no-user-config".split(),
            *"-display none -no-reboot -serial stdio".split(),
            "-smp", str(cpus), "-m", str(MIB),
            "-serial", f"file:{log}.console",
            "-kernel", kernel.vmlinux, "-initrd", kernel.initrd,
            # A kernel that gets no CPU for ten ticks takes its timer for broken and panics.
            # no_timer_check prevents this.
            "-append", f"console=ttyS1 quiet panic=-1 {KERNEL_WORDS} net.ifnames=0 "
            f"tsc=reliable tsc_early_khz={tsc_khz()} no_timer_check hugepages={hugepages} {more}"
            + (" intel_iommu=on iommu=pt" if iommu else ""),
            *(["-device", "intel-iommu,intremap=on,device-iotlb=on"] if iommu else []),
            *_share("hostroot", "/", "readonly=on,multidevs=remap"),
            *_share("exchange", shared, "writeout=immediate"),
            *[word for n, path in enumerate(shares) for word in _share(f"share{n}", path, "writeout=immediate")],
            "-device", "virtio-serial-pci",
            "-chardev", f"socket,id=monitor,fd={ends[0].fileno()}",
            "-mon", "chardev=monitor,mode=control",
            "-chardev", f"socket,id=guest,fd={ends[1].fileno()}",
            "-device", "virtserialport,chardev=guest,name=qmp",
            *devices,
        ]  # fmt: skip
        setup = f'set -e\n{network}\nexec "$@"'
        qemu = subprocess.Popen(
            ["unshare", "--net", "sh", "-c", setup, "qemu", *argv],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=undo.enter_context(open(f"{log}.qemu", "wb")),
            pass_fds=[end.fileno() for end in ends],
            # Otherwise QEMU would outlive a kill -9 of this process.
            preexec_fn=lambda: _libc.prctl(PR_SET_PDEATHSIG, signal.SIGKILL),
        )
        undo.callback(_end, qemu)
        up = _show(qemu, log, seconds + 60)
        return _code(shared, log, up)


def _units(shared):
    """Write the units that init.sh puts below /run/systemd. An empty file masks a unit or a
    generator. Generators would run at each `daemon-reload`."""
    shutil.copytree(f"{HERE}/units", f"{shared}/systemd/system")
    masked = [f"system/{name}" for name in MASKED]
    os.mkdir(f"{shared}/systemd/system-generators")
    if os.path.isdir(GENERATORS):
        masked += [f"system-generators/{name}" for name in os.listdir(GENERATORS)]
    for name in masked:
        with open(f"{shared}/systemd/{name}", "wb"):
            pass


def _share(tag, path, more):
    return ["-fsdev", f"local,id={tag},path={path},security_model=none,{more}",
            "-device", f"virtio-9p-pci,fsdev={tag},mount_tag={tag}"]  # fmt: skip


def mount_line(number, path):
    """Return the line for a shell in the guest that mounts its share of this number. The guest writes
    with a delay, because each write to this machine takes a millisecond."""
    options = "trans=virtio,version=9p2000.L,msize=1048576,cache=loose"
    return f"mkdir -p {path} && mount -t 9p -o {options} share{number} {path}"


def _show(qemu, log, seconds):
    """Copy the guest's output until it ends. Return True if the guest has booted, which
    guest.sh prints first."""
    signal.signal(signal.SIGALRM, lambda *_: qemu.kill())
    signal.alarm(BOOT_S)
    up = False
    try:
        with open(log, "w", encoding="utf-8") as file:
            for line in qemu.stdout:
                if not up:
                    up = True
                    signal.alarm(seconds)
                text = line.decode(errors="replace")
                file.write(text)
                print(text, end="", flush=True)
        qemu.wait()
    finally:
        signal.alarm(0)
    return up


def _end(qemu):
    qemu.kill()
    qemu.wait()
    qemu.stdout.close()


def _code(shared, log, up):
    try:
        with open(f"{shared}/code", encoding="ascii") as file:
            return int(file.read())
    except OSError:
        what = "finish" if up else "boot"
        raise GuestError(f"the guest did not {what}: see {log}.console and .qemu") from None


def _unpacked(image):
    """Return the plain kernel of a vmlinuz that is packed with xz (Debian 12) or zstd (Debian 13).
    The header names place and length of the packed part, whose last four octets are the length of
    the plain kernel (Linux, Documentation/arch/x86/boot.rst: payload_offset)."""
    start, length = struct.unpack_from("<II", image, 0x248)
    start += (image[0x1F1] + 1) * 512
    packed = image[start : start + length - 4]
    if packed.startswith(b"\xfd7zXZ\0"):
        plain = lzma.LZMADecompressor().decompress(packed)
    elif packed.startswith(b"\x28\xb5\x2f\xfd"):
        plain = output(["zstd", "-dc"], given=packed)
    else:
        raise GuestError("the kernel is packed neither with xz nor with zstd")
    if not plain.startswith(b"\x7fELF"):
        raise GuestError("the unpacked kernel is no ELF file")
    return plain


def output(argv, cwd=None, given=None):
    """Return the output of a command: octets if it is given octets, otherwise text. Raise GuestError if it
    fails."""
    done = subprocess.run(argv, cwd=cwd, capture_output=True, input=given, text=given is None)
    if done.returncode != 0:
        raise GuestError(f"{' '.join(argv)}: {done.stderr.strip()}")
    return done.stdout
