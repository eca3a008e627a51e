# SPDX-License-Identifier: BSD-3-Clause
"""Run ExaBGP without its decoder of UPDATE messages.

The helper decodes the octets itself. ExaBGP's decoder ends the session for some flow specifications
that bgpd passes on, such as one with a number of eight octets. So one peer could remove the rules of
all peers."""

import runpy
import sys

from .helper import log


def speak(argv):
    """Run the Python program ExaBGP with its arguments in this process."""
    try:
        _decode_nothing()
    except (ImportError, AttributeError) as why:
        log("exabgp decodes flows", error=str(why))
    sys.argv = list(argv)
    runpy.run_path(argv[0], run_name="__main__")


def _decode_nothing():
    # Parts of ExaBGP 4.2, which hands the octets of a message to its programs before it decodes them.
    from exabgp.bgp.message.update import Update  # pylint: disable=import-outside-toplevel
    from exabgp.bgp.message.update.attribute import Attributes  # pylint: disable=import-outside-toplevel

    if not callable(Update.unpack_message):
        raise AttributeError("Update.unpack_message is no function")
    Update.unpack_message = classmethod(lambda *_: Update([], Attributes()))
