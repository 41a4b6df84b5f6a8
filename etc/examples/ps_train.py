"""Training with parameter servers: servers hold the parameters, workers compute gradients.

The parameters, as one vector, are cut into as many equal shards as there are servers. async: a
server applies each gradient as it comes. sync: a server waits for all workers, adds their gradients
up and makes one step. Without a server the workers use all-reduce.
"""

import threading
import time

import train_common as common
from train_common import EXIT_STOPPED, PeerError, peers

import ddp
import torch
import torch.distributed.rpc as rpc
from torch.futures import Future

GO, STOP, END = "go", "stop", "end"


class Shard:
    """One server's part of the parameters, and the record of who does what."""

    def __init__(self, task, model, found):
        self.task = task
        self.sync = task.args.mode == "sync"
        self.done, flat, state = found or (0, common.flat_parameters(model), {})
        self.total = task.args.epochs * common.TRAIN_SAMPLES
        self.issued = self.done
        self.parameter = torch.nn.Parameter(self._mine(flat).clone())
        self.optimizer = common.make_optimizer([self.parameter], task.args)
        common.load_flat_state(self.optimizer, {k: self._mine(v) for k, v in state.items()})
        self.gradient = torch.zeros_like(self.parameter)
        self.lock = threading.Condition()
        self.turn = {}
        self.waiting = {}
        self.leaving = {}
        self.stopping = False
        self.status = None
        self.loss_sum = self.loss_count = 0
        self.shown = self._step()

    def _mine(self, value):
        if not torch.is_tensor(value):
            return value
        return value.tensor_split(self.task.servers)[self.task.index]

    def _step(self):
        return self.done // self.task.args.batch_size

    def start(self):
        """From now on it is each worker's turn to speak."""
        with self.lock:
            self.turn = {worker: time.monotonic() for worker in range(self.task.workers)}

    # Called by the workers, in threads of torch.distributed.rpc.

    def exchange(self, worker, gradient, count, loss, stop):
        """Take a worker's gradient of count samples (None at first), give parameters and work."""
        future = Future()
        with self.lock:
            self.turn.pop(worker, None)
            self.stopping = self.stopping or stop
            self.waiting[worker] = future
            if gradient is not None:
                self.gradient += gradient
                self.done += count
                self.loss_sum += loss
                self.loss_count += count
            if not self.sync or len(self.waiting) == self.task.workers:
                self._apply(gradient is not None)
                self._answer()
        return future

    def _apply(self, any_gradient):
        if not any_gradient:
            return
        self.parameter.grad = self.gradient
        self.optimizer.step()
        self.gradient.zero_()
        if self._step() >= self.shown + self.task.args.log_every:
            self.shown = self._step()
            self.task.say(f"step {self.shown} loss {self.loss_sum / max(self.loss_count, 1):.4f}")
            self.loss_sum = self.loss_count = 0

    def _answer(self):
        parameters = self.parameter.detach().clone()
        order = END if self.issued >= self.total else STOP if self.stopping else GO
        size = self.task.args.batch_size
        if not self.sync:
            size = max(1, size // self.task.workers)
        size = min(size, self.total - self.issued) if order == GO else 0
        for worker, future in self.waiting.items():
            part = (self.issued, size)
            if self.sync:
                part = common.share(*part, worker, self.task.workers)
            self.turn[worker] = time.monotonic()
            future.set_result((parameters, order, self.done) + part)
        self.issued += size
        self.waiting = {}

    def leave(self, worker):
        """A worker has no more work. Worker 0 hears back when all have come here, to write the
        results; the others when it is done with that."""
        future = Future()
        with self.lock:
            self.turn.pop(worker, None)
            self.leaving[worker] = future
            if len(self.leaving) == self.task.workers:
                self.turn[0] = time.monotonic()
                self.leaving.pop(0).set_result(None)
        return future

    def state(self):
        with self.lock:
            return self.done, self.parameter.detach().clone(), common.flat_state(self.optimizer)

    def release(self, status):
        with self.lock:
            for future in self.leaving.values():
                future.set_result(None)
            self.status = status
            self.lock.notify()

    # The server's main thread.

    def serve(self):
        """Wait until worker 0 ends the run; returns the exit status."""
        limit = self.task.args.timeout
        with self.lock:
            while self.status is None:
                self.lock.wait(0.2)
                self.stopping = self.stopping or common.stop_requested()
                silent = [w for w, t in self.turn.items() if time.monotonic() - t > limit]
                if silent and self.status is None:
                    raise PeerError(f"no word from worker {silent[0]} for {limit:g} s")
            return self.status


SHARD = None


@rpc.functions.async_execution
def exchange(*arguments):
    return SHARD.exchange(*arguments)


@rpc.functions.async_execution
def leave(worker):
    return SHARD.leave(worker)


def state():
    return SHARD.state()


def release(status):
    SHARD.release(status)


class Servers:
    """All servers as a worker sees them."""

    def __init__(self, task):
        self.names = [f"ps{i}" for i in range(task.servers)]

    def call(self, doing, function, arguments):
        """Call all servers at once; arguments: one tuple a server. Returns the list of answers."""
        with peers(doing):
            return torch.futures.wait_all(
                [rpc.rpc_async(n, function, args=a) for n, a in zip(self.names, arguments)])

    def call_same(self, doing, function, *arguments):
        return self.call(doing, function, [arguments] * len(self.names))

    def exchange(self, worker, gradient, count, loss):
        """Push a gradient, pull parameters and the next piece of work: the first server's word."""
        stop = common.stop_requested()
        parts = [None] * len(self.names)
        if gradient is not None:
            parts = gradient.tensor_split(len(self.names))
        answers = self.call("exchanging gradients and parameters", exchange,
                            [(worker, part, count, loss, stop) for part in parts])
        return (torch.cat([a[0] for a in answers]),) + answers[0][1:]

    def state(self):
        """(samples done, parameters, optimizer state) of the whole model."""
        answers = self.call_same("collecting the parameters", state)
        whole = {}
        for key, value in answers[0][2].items():
            if torch.is_tensor(value):
                value = torch.cat([a[2][key] for a in answers])
            whole[key] = value
        return answers[0][0], torch.cat([a[1] for a in answers]), whole


def set_parameters(model, flat):
    torch.nn.utils.vector_to_parameters(flat, model.parameters())


def flat_gradient(model):
    return torch.cat([p.grad.reshape(-1) for p in model.parameters()])


def compute(model, images, labels, args):
    """(gradient, loss) of some samples, or of none if there are more workers than samples."""
    model.zero_grad()
    loss = common.summed_loss(model, images, labels)
    (loss / args.batch_size).backward()
    return flat_gradient(model), loss.item()


def work(task, model, data, checkpoint, found):
    """A worker's run; returns the exit status."""
    servers = Servers(task)
    progress = common.Progress(task, data, found[0] if found else 0)
    flat, order, samples, first, count = servers.exchange(task.index, None, 0, 0.0)
    while order == GO:
        set_parameters(model, flat)
        gradient, loss = compute(model, *data.batch(first, count), task.args)
        progress.add(loss, count)
        flat, order, samples, first, count = servers.exchange(task.index, gradient, count, loss)
        progress.show(samples, model)
        if task.index == 0 and checkpoint.due(samples):
            checkpoint.save(*servers.state())
    servers.call_same("waiting for the other workers", leave, task.index)
    status = EXIT_STOPPED if order == STOP else 0
    if task.index == 0:
        samples, flat, optimizer_state = servers.state()
        set_parameters(model, flat)
        if status:
            checkpoint.stop(samples, flat, optimizer_state)
        else:
            progress.finish(samples, model)
        servers.call_same("ending the servers", release, status)
    return status


def connect(task):
    # A server notices a lost worker after --timeout and can name it; workers wait a little longer.
    try:
        backend = rpc.TensorPipeRpcBackendOptions(
            init_method=f"tcp://{task.address}:{task.port}", rpc_timeout=1.5 * task.args.timeout)
    except TypeError as error:
        raise common.UsageError("this PyTorch is built without TensorPipe, which parameter servers "
                                "talk through: take another, or train without servers") from error
    with peers("connecting servers and workers"):
        rpc.init_rpc(f"{task.role}{task.index}", rank=task.rank, world_size=task.world,
                     rpc_backend_options=backend)


def main():
    global SHARD
    parser = common.options(__doc__)
    parser.add_argument("--mode", choices=["async", "sync"], default="async")
    parser.add_argument("--servers", type=int, default=1,
                        help="servers among the tasks, where dt-launch sets no roles")
    args = common.parse(parser)
    task = common.Task(args, args.servers)
    data = common.Digits() if task.role == "worker" else None
    task.meet()
    if task.servers == 0:
        return ddp.train(task, data)
    model = common.build_model()
    checkpoint = common.Checkpoint(task, model)
    found = checkpoint.load()
    if task.role == "ps":
        SHARD = Shard(task, model, found)
    connect(task)
    if task.role == "ps":
        SHARD.start()
        status = SHARD.serve()
    else:
        status = work(task, model, data, checkpoint, found)
    try:
        rpc.shutdown(timeout=args.timeout)
    except RuntimeError:
        pass  # the work is done and reported; whoever closes first may reset the others' connections
    return status


if __name__ == "__main__":
    common.run(main)
