"""Random frames over all models: python tests/campaign/frames.py --n 10000 --seed 0

Each case draws a frame, a model and arguments, good and bad ones, and then asks the fit for all
that it can do. What is refused with a LodimError is well; all else is counted and told with the
number of the first case, which `--only NUMBER` runs again in this process.
"""

import argparse
import collections
import multiprocessing
import os
import resource
import signal
import sys
import time

import steps

HANG, SILENT = 60, 240  # seconds of a processor for all that a case asks; of a clock
MEMORY = 2.0  # GB beyond which a case is bad
GOOD = ("fitted", "refused", "warned", "calls", "calls refused")


def work(seed, pipe):
    """Run the cases whose numbers come through a pipe, each within HANG seconds of a processor."""
    sys.stdout = sys.stderr = open(os.devnull, "w")  # noqa: SIM115  as long as the process
    steps.warm_up()
    pipe.send(None)
    while (number := pipe.recv()) is not None:
        signal.setitimer(signal.ITIMER_PROF, HANG)  # ends the process, whatever it is doing
        record = steps.run(seed, number)
        signal.setitimer(signal.ITIMER_PROF, 0)
        record.gigabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
        pipe.send(record)


class Worker:
    """A process that runs cases; a fresh one after each that ends it."""

    def __init__(self, seed):
        self.seed, self.process, self.highest = seed, None, 0.0

    def start(self):
        context = multiprocessing.get_context("spawn")
        self.pipe, theirs = context.Pipe()
        self.process = context.Process(target=work, args=(self.seed, theirs), daemon=True)
        self.process.start()
        theirs.close()
        self.pipe.recv()

    def stop(self):
        if self.process is not None:
            self.process.kill()
            self.process.join()
        self.process, self.highest = None, 0.0

    def run(self, number):
        """The record of a case; a hang is tried once more, with all kernels compiled."""
        record = self._try(number)
        return self._try(number) if "hang" in record.bad else record

    def _try(self, number):
        if self.process is None:
            self.start()
        self.pipe.send(number)
        try:
            if not self.pipe.poll(SILENT):
                self.stop()
                return steps.Record(number, {"hang": [f"{SILENT} s of a clock"]})
            record = self.pipe.recv()
        except EOFError:
            self.process.join()
            code = self.process.exitcode
            self.stop()
            hung = code == -signal.SIGPROF
            return steps.Record(number, {"hang" if hung else "crash": [f"exit status {code}"]})
        if record.gigabytes > max(MEMORY, 1.5 * self.highest):
            record.bad["memory"] = [f"{record.gigabytes:.1f} GB"]
        self.highest = max(self.highest, record.gigabytes)
        return record


def share(seed, numbers, end, pipe):
    """Send the records of some cases, in order."""
    worker = Worker(seed)
    for number in numbers:
        if time.time() > end:
            break
        pipe.send(worker.run(number))
    worker.stop()
    pipe.send(None)


def records(seed, numbers, jobs, end):
    """The records of all cases, as they come, until all are done or the clock is at `end`."""
    context = multiprocessing.get_context("spawn")
    pipes, processes = [], []
    for k in range(jobs):
        ours, theirs = context.Pipe(duplex=False)
        process = context.Process(target=share, args=(seed, numbers[k::jobs], end, theirs))
        process.start()
        theirs.close()
        pipes.append(ours)
        processes.append(process)
    while pipes:
        for pipe in multiprocessing.connection.wait(pipes):
            record = pipe.recv()
            if record is None:
                pipes.remove(pipe)
            else:
                yield record
    for process in processes:
        process.join()


def main(argv=None):
    """Run the campaign and print its table; 1 if any kind is bad."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--n", type=int, default=500, help="cases")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--first", type=int, default=0, help="number of the first case")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--minutes", type=float, default=1e9, help="after which it ends early")
    parser.add_argument("--only", type=int, help="run this case here, and print what it does")
    args = parser.parse_args(argv)
    if args.only is not None:
        record = steps.run(args.seed, args.only, loud=True)
        print(record)
        return int(bool(record.bad))
    start, counts, kinds, first = time.time(), collections.Counter(), collections.Counter(), {}
    numbers = list(range(args.first, args.first + args.n))
    for record in records(args.seed, numbers, args.jobs, start + 60.0 * args.minutes):
        counts.update(cases=1, **record.counts)
        for kind, texts in record.bad.items():
            kinds[kind] += len(texts)
            for text in texts:
                first.setdefault((kind, text), []).append(record.number)
    print(f"{counts['cases']} random frames, seed {args.seed}, from {args.first}")
    for name in GOOD:
        print(f"{name:28}{counts[name]:10}")
    for kind in steps.BAD:
        print(f"{kind:28}{kinds[kind]:10}")
    for (kind, text), where in sorted(first.items(), key=lambda item: -len(item[1])):
        print(f"\n{kind}, {len(where)} times, first --only {where[:3]}\n  {text}")
    print(f"\n{time.time() - start:.0f} s", file=sys.stderr)
    return int(bool(kinds))


if __name__ == "__main__":
    sys.exit(main())
