"""For programs that dt-tune starts: their parameters, and what they report. One file, no more.

    import dt_tune
    lr = dt_tune.param("lr", 0.1)            # of the same type as the default
    for epoch in range(dt_tune.param("epochs", 10)):
        ...
        dt_tune.report(epoch=epoch, loss=loss, accuracy=accuracy)

Outside of a trial parameters have their defaults and nothing is reported, so the program is the
same. Python 3.6 or later.
"""

import json
import os
import time


def trial():
    """The trial's number, 0 outside of one."""
    return int(os.environ.get("DT_TRIAL") or 0)


def params():
    """All hyperparameters of the trial, numbers and strings; one without a value is not there."""
    return json.loads(os.environ.get("DT_PARAMS") or "{}")


def param(name, default=None):
    """The hyperparameter, of the default's type; the default where it has no value."""
    value = params().get(name)
    if value is None:
        return default
    if isinstance(default, bool):
        return value in (True, 1, "1", "true", "True", "yes", "on")
    if isinstance(default, int):
        if float(value) != int(float(value)):
            raise ValueError("parameter {} is {}, not a whole number".format(name, value))
        return int(float(value))
    return value if default is None else type(default)(value)


def checkpoint_dir(default=None):
    """The folder for checkpoints, which a restarted trial finds again; else the default."""
    return os.environ.get("DT_CHECKPOINT_DIR") or default


def restarts():
    """How often the trial was begun before: more than 0 means to look for a checkpoint."""
    return int(os.environ.get("DT_RESTARTS") or 0)


def report(**metrics):
    """Report numbers by name, `step` or `epoch` among them to say how far the program is.

    In a program of many tasks one does it; where several do, their lines do not mix.
    """
    path = os.environ.get("DT_METRICS_FILE")
    if not path:
        return
    line = {name: float(value) for name, value in metrics.items()}
    line.setdefault("time", time.time())
    data = (json.dumps(line) + "\n").encode()
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o666)
    try:
        os.write(descriptor, data)
    finally:
        os.close(descriptor)
