# SPDX-License-Identifier: BSD-3-Clause
"""The points at which the plugin enters FRR's library of topotests.

FRR's files are not changed: functions of its modules are replaced in this process. Import the
module in FRR's folder tests/topotests, before its tests import the library.
"""

import os
import resource
import sys

import ours  # noqa: F401 pylint: disable=unused-import
from sysctls import Sysctls

sys.path.insert(0, os.getcwd())
# All modules that import names from others, so that replace() finds each copy of a name.
from lib import (
    common_config,
    micronet,
    micronet_compat,
    topogen,
    topojson,
    topotest,
)  # noqa: E402, F401
import lib.bgp  # noqa: E402, F401
import lib.ospf  # noqa: E402, F401
import lib.pim  # noqa: E402, F401

try:
    from munet import cleanup  # noqa: E402
except ImportError:  # before FRR 9.0
    cleanup = micronet_compat

SPEAKS_FPM = "fpm address 127.0.0.1"


def replace(owner, name, new):
    """Put `new` in the place of owner.name, also in the modules that imported the name."""
    old = getattr(owner, name)
    setattr(owner, name, new)
    packages = ("lib", "munet")
    for module in [m for n, m in list(sys.modules.items()) if n.partition(".")[0] in packages]:
        if getattr(module, name, None) is old:
            setattr(module, name, new)
    return old


def spare_the_machine():
    """Keep the topotests from changing the machine: its sysctls, its kernel modules, its other
    processes. Limits that this process may not raise stay as they are."""
    replace(topotest, "fix_host_limits", lambda: None)
    replace(topotest, "module_present", _module_is_there)
    replace(topogen, "diagnose_env", _makes_run_folder)
    # The real function would end a run beside this one.
    replace(cleanup, "cleanup_previous", lambda rundir=None: None)
    for name in ("_sysctl_atleast", "_sysctl_assure"):
        replace(topotest, name, _with_sysctls(getattr(topotest, name)))
    set_limit = resource.setrlimit

    def set_limit_if_allowed(*words):
        try:
            set_limit(*words)
        except (ValueError, OSError):
            pass

    resource.setrlimit = set_limit_if_allowed


def _with_sysctls(function):
    return lambda commander, *words: function(Sysctls(commander), *words)


def _module_is_there(module, load=True):
    del load
    return os.path.isdir("/sys/module/" + module.replace("-", "_"))


def _makes_run_folder(rundir):
    os.makedirs(rundir, exist_ok=True)
    return True


def on_start(call):
    """Run call(net) when a topology is built, before its FRR starts."""
    start = micronet_compat.Mininet.start

    def start_after(self):
        call(self)
        start(self)

    micronet_compat.Mininet.start = start_after


def on_stop(before, after):
    """Run before(net) before the FRR of a topology ends, and after() when it has ended and its
    interfaces are still there."""
    stop, delete = topogen.Topogen.stop_topology, micronet.Micronet.delete

    def stop_after(self):
        before(self.net)
        stop(self)

    def delete_after(self):
        after()
        delete(self)

    topogen.Topogen.stop_topology = stop_after
    micronet.Micronet.delete = delete_after


def speak_to_dataplane(has_dataplane, bfd_port):
    """Start zebra with its FPM module, and configure the module, in the routers for which
    has_dataplane(name) is true. With a port, start bfdd so that it gives its sessions to the
    dataplane."""
    start_daemons = topotest.Router.startRouterDaemons

    def start_with_module(self, daemons=None, tgen=None):
        if has_dataplane(self.name) and (daemons is None or "zebra" in daemons):
            options = self.daemons_options.get("zebra") or ""
            if "dplane_fpm_nl" not in options:
                self.daemons_options["zebra"] = options + " -M dplane_fpm_nl"
            path = f"/etc/frr/{'frr' if self.unified_config else 'zebra'}.conf"
            lines = f"\\n!\\n{SPEAKS_FPM}\\n"
            self.cmd(f"grep -q '^fpm address' {path} || printf '{lines}' >>{path}")
        if has_dataplane(self.name) and bfd_port:
            self.daemons_options["bfdd"] = f"--dplaneaddr ipv4:127.0.0.1:{bfd_port}"
        return start_daemons(self, daemons, tgen)

    topotest.Router.startRouterDaemons = start_with_module
    load = common_config.load_config_to_routers

    def load_with_line(tgen, routers, save_bkup=False):
        """Load a configuration. If it is saved, add the line, because tests go back to the saved one."""
        for name in routers if save_bkup else ():
            if has_dataplane(name):
                path = f"{tgen.logdir}/{name}/{common_config.FRRCFG_FILE}"
                with open(path, "a", encoding="utf-8") as file:
                    file.write(f"\n!\n{SPEAKS_FPM}\n!\n")
        return load(tgen, routers, save_bkup)

    replace(common_config, "load_config_to_routers", load_with_line)


def routers(net):
    """Return the routers of a topology that have interfaces."""
    return [h for h in net.hosts.values() if isinstance(h, topotest.Router) and h.intfs]


def topology():
    """Return the topology that runs, or None."""
    made = topogen.get_topogen()
    return made.net if made is not None else None
