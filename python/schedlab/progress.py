"""The progress of long work: a tqdm bar, if tqdm is installed."""

import contextlib


@contextlib.contextmanager
def shown(wanted):
    """A function with the parameters work, finished steps and all steps; None if no bar is wanted or tqdm is not installed."""
    bars = {}
    try:
        from tqdm.auto import tqdm
    except ImportError:
        wanted = False

    def show(what, done, total):
        if what not in bars:
            bars[what] = tqdm(desc=what, total=total, leave=False)
        bar = bars[what]
        bar.total = total
        bar.update(done - bar.n)

    try:
        yield show if wanted else None
    finally:
        for bar in bars.values():
            bar.close()
