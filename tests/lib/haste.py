# SPDX-License-Identifier: BSD-3-Clause
"""Programs that wait for a part of their time only (base/haste.h)."""

import contextlib
import os

NAME = "FPM_DATAPLANE_HASTE"


@contextlib.contextmanager
def hasty(times):
    """What is started in the block has waits so many times as short."""
    os.environ[NAME] = str(times)
    try:
        yield
    finally:
        del os.environ[NAME]
