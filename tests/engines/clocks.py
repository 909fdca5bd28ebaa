"""Processes whose clock is hours off: a small library between them and the system shifts what it says of the date."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

HOURS = 3600
_SHIFT = "TREETOP_TESTS_SHIFT"
_SOURCE = f"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdlib.h>
#include <sys/time.h>
#include <time.h>

static long shift(void) {{ const char *text = getenv("{_SHIFT}"); return text ? atol(text) : 0; }}

int clock_gettime(clockid_t which, struct timespec *now) {{
    static int (*real)(clockid_t, struct timespec *);
    if (!real) real = dlsym(RTLD_NEXT, "clock_gettime");
    int result = real(which, now);
    if (!result && (which == CLOCK_REALTIME || which == CLOCK_REALTIME_COARSE)) now->tv_sec += shift();
    return result;
}}

int gettimeofday(struct timeval *now, void *zone) {{
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    now->tv_sec = exact.tv_sec;
    now->tv_usec = exact.tv_nsec / 1000;
    return 0;
}}

time_t time(time_t *out) {{
    struct timespec exact;
    clock_gettime(CLOCK_REALTIME, &exact);
    if (out) *out = exact.tv_sec;
    return exact.tv_sec;
}}
"""


def shifted(folder: Path, hours: float) -> dict[str, str]:
    """What stands in the environment of a process whose clock is so many hours ahead; skip where that cannot be."""
    compiler = shutil.which("cc")
    if compiler is None or not Path("/proc").is_dir():
        pytest.skip("clocks are shifted on Linux with a C compiler: apt-get install gcc")
    source, library = folder / "clock.c", folder / "clock.so"
    if not library.exists():
        source.write_text(_SOURCE)
        subprocess.run([compiler, "-shared", "-fPIC", "-o", library, source, "-ldl"], check=True)
    return {"LD_PRELOAD": str(library), _SHIFT: str(round(hours * HOURS))}
