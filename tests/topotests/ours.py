# SPDX-License-Identifier: BSD-3-Clause
"""Our package tests/lib in a process that has FRR's package `lib`, too.

Import this module before any module of FRR. It imports the parts of tests/lib that the plugin
uses, and then removes them from the table of modules, so that `import lib` finds FRR's package.
The imported parts keep their references to each other.
"""

import os
import sys

TESTS = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))

sys.path.insert(0, TESTS)
from lib import netns, procs  # noqa: E402, F401
from lib.audited import only_copies_differ  # noqa: E402, F401
from lib.dataplane import Dataplane  # noqa: E402, F401
from lib.links import OFF  # noqa: E402, F401
from lib.wait import PATIENCE, Timeout, eventually  # noqa: E402, F401

sys.path.remove(TESTS)
for _name in [name for name in sys.modules if name.partition(".")[0] == "lib"]:
    del sys.modules[_name]
