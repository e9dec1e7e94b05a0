"""How far long work has come: a bar of tqdm's, where tqdm is installed."""

import contextlib


@contextlib.contextmanager
def shown(wanted):
    """A function that takes what is being done, how many steps of it are done, and of how many; None if nobody wants to see or tqdm is not there."""
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
