"""What the training examples share: a task's place in its job, data, model, checkpoints, metrics.

Everything comes from the environment that dt-launch sets, else from the one that srun sets, else
from defaults, so the same programs run under `sbatch --dt-tune`, plain `sbatch`, or by hand.
"""

import argparse
import contextlib
import ipaddress
import os
import re
import signal
import socket
import sys
import time
import traceback
from datetime import timedelta

# Importing torch takes seconds: a request to stop must not kill a task that is still at it.
_stop = []
for _number in (signal.SIGUSR1, signal.SIGTERM):
    signal.signal(_number, lambda number, frame: _stop.append(number))

# As a shell reports a program that SIGTERM ended: stopped on request, not failed.
EXIT_STOPPED = 143


class UsageError(Exception):
    """What the user can put right: the program ends with status 2."""


class PeerError(Exception):
    """Another task is gone or silent: the program ends with status 1."""


def stop_requested():
    return bool(_stop)


def env_int(names, default):
    """The first of these environment variables that is set, as a number."""
    for name in names:
        text = os.environ.get(name)
        if text:
            try:
                return int(text)
            except ValueError:
                raise UsageError(f"{name}={text} is not a whole number") from None
    return default


# OpenMP reads this when torch is loaded, and only so does it hold for the threads that serve RPCs.
CPUS = os.environ.get("DT_CPUS") or os.environ.get("SLURM_CPUS_PER_TASK") or "1"
os.environ["OMP_NUM_THREADS"] = CPUS
# Some builds of torch print notices when an RPC program ends; what matters is raised as well.
os.environ.setdefault("GLOG_minloglevel", "2")
os.environ.setdefault("USE_LIBUV", "0")  # for PyTorch's own rendezvous; see below

import dt_tune  # noqa: E402
import torch  # noqa: E402
import torch.distributed as dist  # noqa: E402
from torch import nn  # noqa: E402


# ------------------------------------------------------------------------------------ options


def options(description):
    """The options of all programs; a hyperparameter of a study takes the default's place."""

    def chosen(name, default):
        return os.environ.get(f"DT_PARAM_{name}", default)

    parser = argparse.ArgumentParser(description=description)
    parser.add_argument("--lr", type=float, default=chosen("lr", "0.05"), help="learning rate")
    parser.add_argument("--batch-size", type=int, default=chosen("batch_size", "64"),
                        help="samples of all workers together in one step")
    parser.add_argument("--optimizer", choices=["sgd", "adam"], default=chosen("optimizer", "sgd"))
    parser.add_argument("--epochs", type=int, default=chosen("epochs", "10"),
                        help="passes over the data, however many workers share them")
    parser.add_argument("--log-every", type=int, default=10, help="steps between two lines")
    parser.add_argument("--checkpoint-every", type=int, default=0,
                        help="steps between two checkpoints (default: only when asked to stop)")
    parser.add_argument("--timeout", type=float, default=60,
                        help="seconds of silence after which another task counts as lost")
    parser.add_argument("--start-timeout", type=float, default=300,
                        help="seconds to wait until all tasks are there")
    return parser


def parse(parser):
    args = parser.parse_args()
    for name in ("lr", "batch_size", "epochs", "log_every", "timeout", "start_timeout"):
        if not getattr(args, name) > 0:
            raise UsageError(f"{name} is {getattr(args, name)}; it must be greater than 0")
    if args.checkpoint_every < 0:
        raise UsageError(f"checkpoint_every is {args.checkpoint_every}; it must not be below 0")
    return args


# ------------------------------------------------------------------------- place in the job


def _master_address():
    """Where rank 0 runs, if dt-launch did not say so: the first node of this step."""
    nodes = os.environ.get("SLURM_STEP_NODELIST") or os.environ.get("SLURM_JOB_NODELIST")
    if not nodes or os.environ.get("SLURM_STEP_NUM_NODES", "1") == "1":
        return "127.0.0.1"
    prefix, number = re.match(r"([^\[,]+)(?:\[(\d+))?", nodes).groups()
    host = prefix + (number or "")
    try:
        socket.gethostbyname(host)
        return host
    except OSError:
        # A batch script, and so its srun, runs on the job's first node.
        return os.environ.get("SLURM_LAUNCH_NODE_IPADDR", host)


class Task:
    """Who this process is and who the others are."""

    def __init__(self, args, servers):
        """servers: how many of several tasks serve parameters where no DT_ROLE says so."""
        self.args = args
        self.rank = env_int(["RANK", "SLURM_PROCID"], 0)
        self.world = env_int(["WORLD_SIZE", "SLURM_STEP_NUM_TASKS"], 1)
        self.address = os.environ.get("MASTER_ADDR") or _master_address()
        self.port = env_int(["MASTER_PORT"], 20000 + env_int(["SLURM_JOB_ID"], 9500) % 20000)
        self.role = os.environ.get("DT_ROLE")
        if not self.role:
            self.role = "ps" if self.world > 1 and self.rank < servers else "worker"
        if self.role not in ("ps", "worker"):
            raise UsageError(f"role {self.role} (DT_ROLE) is not known here; known: ps, worker")
        if not 0 <= self.rank < self.world:
            raise UsageError(f"rank {self.rank} does not fit a job of {self.world} tasks "
                             "(RANK, WORLD_SIZE)")
        self.store = None
        self.roles = [self.role]
        torch.set_num_threads(env_int(["DT_CPUS", "SLURM_CPUS_PER_TASK"], 1))

    def meet(self):
        """Wait for the others and learn their roles; returns self. One task alone opens no port."""
        if self.world > 1:
            self._use_loopback()
            wait = timedelta(seconds=self.args.start_timeout)
            with peers(f"meeting the other {self.world - 1} tasks at {self.address}:{self.port}"):
                # Debian's PyTorch 2 would use libuv by itself, but is built without.
                known = dist.TCPStore.__init__.__doc__ or ""
                plain = {"use_libuv": False} if "use_libuv" in known else {}
                self.store = dist.TCPStore(self.address, self.port, self.world, self.rank == 0,
                                           timeout=wait, multi_tenant=True, **plain)
                self.store.set(f"role{self.rank}", self.role)
                self.roles = [self.store.get(f"role{r}").decode() for r in range(self.world)]
        if "worker" not in self.roles:
            raise UsageError("parameter servers but no worker; ask for at least one")
        return self

    def _use_loopback(self):
        """Peers on a loopback address can be reached by the loopback interface only."""
        try:
            address = ipaddress.ip_address(socket.gethostbyname(self.address))
        except OSError as error:
            raise UsageError(f"MASTER_ADDR={self.address}: {error}") from None
        if address.is_loopback:
            os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
            os.environ.setdefault("TP_SOCKET_IFNAME", "lo")

    @property
    def servers(self):
        return self.roles.count("ps")

    @property
    def workers(self):
        return self.roles.count("worker")

    @property
    def index(self):
        """The number of this task within its role."""
        return self.roles[: self.rank].count(self.role) if len(self.roles) > 1 else 0

    def say(self, text):
        # One write a line: all tasks share the job's output, and print() may make two of it.
        sys.stdout.write(f"[{self.role} {self.index}] {text}\n")
        sys.stdout.flush()


@contextlib.contextmanager
def peers(doing):
    """What torch's communication throws as RuntimeError becomes one line that says where."""
    try:
        yield
    except RuntimeError as error:
        lines = str(error).strip().splitlines() or [type(error).__name__]
        raise PeerError(f"lost contact while {doing}: {lines[0]}") from None


# -------------------------------------------------------------------------------------- data


DIGITS = 1797
# For the servers, which know how much work there is without loading the data.
TRAIN_SAMPLES = DIGITS - DIGITS // 5


class Digits:
    """scikit-learn's 1797 handwritten digits; every fifth is kept for the test.

    Loading them takes seconds, in which no task is to be taken for lost and no worker to train
    alone: it is done before the tasks meet.
    """

    def __init__(self):
        try:
            from sklearn.datasets import load_digits
        except ImportError:
            raise UsageError("this example reads its data from scikit-learn; "
                             "install it (Debian: python3-sklearn) or set PYTHON") from None
        raw = load_digits()
        images = torch.tensor(raw.images, dtype=torch.float32).unsqueeze(1) / 16
        labels = torch.tensor(raw.target, dtype=torch.int64)
        test = torch.arange(len(labels)) % 5 == 4
        self.test = images[test], labels[test]
        self.images, self.labels = images[~test], labels[~test]
        if len(labels) != DIGITS:
            raise UsageError(f"this scikit-learn has {len(labels)} digits instead of {DIGITS}")
        self._orders = {}

    def __len__(self):
        return len(self.labels)

    def _order(self, epoch):
        if epoch not in self._orders:
            generator = torch.Generator().manual_seed(epoch)
            self._orders[epoch] = torch.randperm(len(self), generator=generator)
        return self._orders[epoch]

    def batch(self, start, count):
        """Samples start to start + count of an endless stream, shuffled anew in each epoch.

        All tasks see the same stream, so the tasks' parts of it never overlap, and a run can be
        continued at any point of it by another number of workers.
        """
        parts = [torch.empty(0, dtype=torch.int64)]
        while count > 0:
            epoch, offset = divmod(start, len(self))
            part = self._order(epoch)[offset : offset + count]
            parts.append(part)
            start += len(part)
            count -= len(part)
        chosen = torch.cat(parts)
        return self.images[chosen], self.labels[chosen]


def share(start, count, index, of):
    """The part of samples start to start + count that falls to one of several workers."""
    first = count * index // of
    return start + first, count * (index + 1) // of - first


# ------------------------------------------------------------------------- model, optimizer


def build_model():
    torch.manual_seed(1)
    return nn.Sequential(
        nn.Conv2d(1, 32, 3, padding=1), nn.ReLU(),
        nn.Conv2d(32, 64, 3, padding=1), nn.ReLU(),
        nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(64 * 4 * 4, 256), nn.ReLU(),
        nn.Linear(256, 10),
    )


def summed_loss(model, images, labels):
    """Summed, not averaged: then gradients of parts of a batch just add up."""
    return nn.functional.cross_entropy(model(images), labels, reduction="sum")


def accuracy(model, data):
    images, labels = data.test
    with torch.no_grad():
        return (model(images).argmax(1) == labels).float().mean().item()


def make_optimizer(parameters, args):
    if args.optimizer == "adam":
        # The default learning rate suits SGD with momentum; Adam wants about a fiftieth of it.
        return torch.optim.Adam(parameters, lr=args.lr / 50)
    return torch.optim.SGD(parameters, lr=args.lr, momentum=0.9)


def flat_parameters(model):
    return nn.utils.parameters_to_vector(model.parameters()).detach().clone()


def flat_state(optimizer):
    """The optimizer's state as a vector a kind: the same for a model and for joined shards."""
    state = {}
    for parameter in optimizer.param_groups[0]["params"]:
        for key, value in optimizer.state.get(parameter, {}).items():
            if torch.is_tensor(value) and value.dim() > 0:
                state.setdefault(key, []).append(value.detach().reshape(-1))
            else:
                state[key] = float(value)
    return {k: torch.cat(v) if isinstance(v, list) else v for k, v in state.items()}


def load_flat_state(optimizer, state):
    """The inverse of flat_state, for an optimizer of the same total size."""
    parameters = optimizer.param_groups[0]["params"]
    sizes = [p.numel() for p in parameters]
    for key, value in state.items():
        if torch.is_tensor(value):
            values = [v.clone().view_as(p) for v, p in zip(value.split(sizes), parameters)]
        else:
            values = [torch.tensor(value) for _ in parameters]
        for parameter, part in zip(parameters, values):
            optimizer.state[parameter][key] = part


# ------------------------------------------------------------------------------- checkpoints


class Checkpoint:
    """The file that a stopped run continues from, by any number of servers and workers."""

    def __init__(self, task, model):
        directory = os.environ.get("DT_CHECKPOINT_DIR")
        self.path = os.path.join(directory, "checkpoint.pt") if directory else None
        self.task = task
        self.shape = [[name, list(p.shape)] for name, p in model.named_parameters()]
        self.saved = None

    def due(self, samples):
        """Whether the time has come to save while the training goes on."""
        every = self.task.args.checkpoint_every * self.task.args.batch_size
        if not every or not self.path:
            return False
        before, self.saved = self.saved, samples // every
        return before is not None and self.saved > before

    def stop(self, samples, flat, state):
        """Save, as the training was asked to stop."""
        step = samples // self.task.args.batch_size
        if not self.path:
            self.task.say(f"stopped at step {step}, nothing saved: DT_CHECKPOINT_DIR is not set")
            return
        self.save(samples, flat, state)
        self.task.say(f"stopped at step {step}, checkpoint written to {self.path}")

    def save(self, samples, flat, state):
        """Whoever reads the file meanwhile finds the old one or the new one, whole."""
        args = self.task.args
        step = samples // args.batch_size
        os.makedirs(os.path.dirname(self.path), exist_ok=True)
        temporary = f"{self.path}.{os.getpid()}.tmp"
        content = {"version": 1, "step": step, "samples": samples, "model": flat,
                   "model_shape": self.shape, "optimizer": args.optimizer,
                   "optimizer_state": state,
                   "ps": self.task.servers, "workers": self.task.workers}
        with open(temporary, "wb") as file:
            torch.save(content, file)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, self.path)

    def load(self):
        """(samples done, parameters, optimizer state), or None where there is no checkpoint."""
        if not self.path or not os.path.exists(self.path):
            return None
        hint = "remove it to start from the beginning"
        try:
            found = torch.load(self.path, map_location="cpu", weights_only=True)
        except Exception as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UsageError(f"cannot read checkpoint {self.path}: {reason}; {hint}") from None
        if not isinstance(found, dict) or found.get("version") != 1:
            raise UsageError(f"{self.path} is not a checkpoint of this program; {hint}")
        if found["model_shape"] != self.shape:
            raise UsageError(f"checkpoint {self.path} is of another model "
                             f"({_differs(found['model_shape'], self.shape)}); {hint}")
        if found["optimizer"] != self.task.args.optimizer:
            raise UsageError(f"checkpoint {self.path} is of optimizer {found['optimizer']}, this "
                             f"run uses {self.task.args.optimizer}; {hint}")
        return found["samples"], found["model"], found["optimizer_state"]


def _differs(theirs, ours):
    for their, our in zip(theirs, ours):
        if their != our:
            return f"there {their[0]} {their[1]}, here {our[0]} {our[1]}"
    return f"there {len(theirs)} tensors, here {len(ours)}"


# --------------------------------------------------------------------------------- progress


class Progress:
    """A worker's log lines and, of worker 0, what dt-tune gets to know."""

    def __init__(self, task, data, samples):
        self.task = task
        self.data = data
        self.loss_sum = self.loss_count = 0
        self.last_loss = None
        self._mark(samples)
        self.epoch = samples // len(data)
        if samples and task.index == 0:
            task.say(f"resumed at step {samples // task.args.batch_size}")

    def _mark(self, samples):
        self.samples, self.time = samples, time.monotonic()

    def add(self, loss_sum, count):
        """The loss of some samples that this worker has trained with."""
        self.loss_sum += loss_sum
        self.loss_count += count

    def show(self, samples, model):
        """After a step: samples is the work done by all workers together."""
        size = self.task.args.batch_size * self.task.args.log_every
        if samples // size == self.samples // size:
            return
        got = None
        epoch = samples // len(self.data)
        if epoch > self.epoch and self.task.index == 0:
            self.epoch = epoch
            got = accuracy(model, self.data)
        self._line(samples, got)

    def finish(self, samples, model):
        got = accuracy(model, self.data)
        self._line(samples, got)
        self.task.say(f"done: step {samples // self.task.args.batch_size}, "
                      f"test accuracy {got:.4f}")

    def _line(self, samples, got=None):
        step = samples // self.task.args.batch_size
        now = time.monotonic()
        rate = (samples - self.samples) / max(now - self.time, 1e-9)
        if self.loss_count:
            self.last_loss = self.loss_sum / self.loss_count
        # epochs tell how far it is whatever the batch size; dt-tune compares trials by them
        metrics = {"step": step, "epoch": round(samples / len(self.data), 4)}
        text = f"step {step}"
        for name, value, form in (
            ("loss", self.last_loss, " loss {:.4f}"),
            ("accuracy", got, " accuracy {:.4f}"),
            ("samples_per_s", rate if samples > self.samples else None, " {:.0f} samples/s"),
        ):
            if value is not None:
                metrics[name] = round(value, 6)
                text += form.format(value)
        self.task.say(text)
        if self.task.index == 0:
            dt_tune.report(**metrics)
        self.loss_sum = self.loss_count = 0
        self._mark(samples)


# ------------------------------------------------------------------------------------- start


def run(main):
    """Run a program's main(), which returns the exit status; never hang on the way out."""
    try:
        status = main()
    except (UsageError, PeerError) as error:
        role = os.environ.get("DT_ROLE", "task")
        rank = os.environ.get("RANK") or os.environ.get("SLURM_PROCID", "0")
        name = os.path.basename(sys.argv[0])
        sys.stderr.write(f"{name}: {role}, rank {rank}: {error}\n")
        status = 2 if isinstance(error, UsageError) else 1
    except Exception:
        traceback.print_exc()
        status = 1
    sys.stdout.flush()
    sys.stderr.flush()
    # torch's threads may still wait for a peer that is gone; everything of ours is written.
    os._exit(status)
