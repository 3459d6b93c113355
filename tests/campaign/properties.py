"""Draws other examples for the property tests: python tests/campaign/properties.py [runs] [first].

Runs them all with the seeds first, first + 1, ... of hypothesis (100 runs from seed 1), each with
as many examples as the tests have in every run, and ends with the counts and what has failed.
"""

import re
import subprocess
import sys
from pathlib import Path

OPTIONS = "--import-mode=importlib -p no:cacheprovider"
TESTS = Path(__file__).resolve().parents[1]


def run(seed):
    """How many tests have passed with a seed, and the lines on those that have not."""
    which = ["-m", "hypothesis", "--hypothesis-profile=campaign", f"--hypothesis-seed={seed}"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-o", f"addopts={OPTIONS}", *which, TESTS],
        capture_output=True,
        text=True,
    )
    bad = re.findall(r"^(?:FAILED|ERROR) .*", done.stdout, re.M)
    good = int((re.search(r"(\d+) passed", done.stdout) or [0, 0])[1])
    if not bad and (done.returncode or not good):
        bad = [(done.stdout + done.stderr)[-2000:]]
    if bad:
        print(done.stdout, flush=True)  # with the examples, which belong into the tests
    return good, bad


def main(runs=100, first=1):
    """Run all seeds; the exit status is 1 where a test has failed."""
    passed, failures = 0, []
    for seed in range(first, first + runs):
        good, bad = run(seed)
        passed, failures = passed + good, failures + [f"seed {seed}: {line}" for line in bad]
        print(f"seed {seed}: {good} passed, {len(bad)} failed", flush=True)
    print(f"{runs} runs, {passed} tests passed, {len(failures)} failed", *failures, sep="\n")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main(*map(int, sys.argv[1:3])))
