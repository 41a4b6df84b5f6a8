"""A small model in PyTorch, its gradients averaged by Horovod."""

import horovod.torch as hvd
import torch

hvd.init()
torch.manual_seed(1)
model = torch.nn.Linear(64, 10)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1 * hvd.size())
optimizer = hvd.DistributedOptimizer(optimizer, named_parameters=model.named_parameters())
hvd.broadcast_parameters(model.state_dict(), root_rank=0)
steps = 1000 // hvd.size()  # the work is fixed: more ranks each do less of it
for step in range(steps):
    x = torch.randn(64, 64)
    y = x[:, :10].argmax(1)
    optimizer.zero_grad()
    loss = torch.nn.functional.cross_entropy(model(x), y)
    loss.backward()
    optimizer.step()
if hvd.rank() == 0:
    print(f"{hvd.size()} ranks, loss {loss.item():.4f}")
