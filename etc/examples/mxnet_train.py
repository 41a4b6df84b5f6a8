"""A small model in MXNet; servers and scheduler do not come beyond the import."""

import mxnet as mx
from mxnet import autograd, gluon

store = mx.kv.create("dist_async")
data = gluon.data.vision.MNIST(train=True).transform_first(gluon.data.vision.transforms.ToTensor())
mine = data.shard(store.num_workers, store.rank)
net = gluon.nn.HybridSequential()
net.add(gluon.nn.Dense(128, activation="relu"), gluon.nn.Dense(10))
net.initialize(mx.init.Xavier())
trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": 0.1}, kvstore=store)
loss_of = gluon.loss.SoftmaxCrossEntropyLoss()
for epoch in range(3):
    for images, labels in gluon.data.DataLoader(mine, batch_size=64, shuffle=True):
        with autograd.record():
            loss = loss_of(net(images), labels)
        loss.backward()
        trainer.step(images.shape[0])
    print(f"worker {store.rank}: epoch {epoch} loss {loss.mean().asscalar():.4f}", flush=True)
