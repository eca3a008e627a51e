# SPDX-License-Identifier: BSD-3-Clause
"""The advice of doctor about the MTU of a bridge over a vxlan device."""

from lib.wait import eventually
from test_vxlan import VTEP, doctor, leaf
from vxlan_links import neighbors


def test_doctor_names_the_narrowest_link_to_all_vteps(dut):
    """One VTEP is reached by two links, and another VTEP by a third link. doctor names the link with
    the smallest MTU, and the MTU that fits all three links."""
    wan, alt, lan = (dut.wires[w] for w in ("wan", "alt", "lan"))
    other = "203.0.113.67"
    said = lambda: doctor(dut).get("br1", {"text": ""})["text"]  # noqa: E731
    with leaf(dut, 4):
        neighbors(dut.ctl, other, "02:00:5e:00:53:98")
        dut.route(f"{VTEP[4]}/32", nhid=dut.zebra.group([dut.zebra.hop(w.peer4, w) for w in (wan, alt)]))
        dut.route(f"{other}/32", lan.peer4, lan)
        dut.ip("link set vx1 mtu 1500", "link set br1 mtu 1500")
        try:
            for narrow, mtu in ((alt, 1400), (lan, 1300)):
                dut.ip(f"link set {narrow.tap} mtu {mtu}")
                text = f"MTU 1500, but only {mtu - 50} fit by {narrow.tap}; "
                eventually(lambda t=text: t in said(), 5, 0.05, text)
            dut.ip("link set br1 mtu 1250")
            eventually(lambda: said() == "", 5, 0.05, "all fits")
        finally:
            dut.ip(f"link set {alt.tap} mtu 1500", f"link set {lan.tap} mtu 1500")
