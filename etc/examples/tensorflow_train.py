"""A small model in TensorFlow 2; who does what stands in TF_CONFIG."""

import tensorflow as tf

resolver = tf.distribute.cluster_resolver.TFConfigClusterResolver()
cluster = resolver.cluster_spec().as_dict()
if "ps" in cluster and resolver.task_type in ("ps", "worker"):
    # They serve the chief until they are told to end.
    tf.distribute.Server(resolver.cluster_spec(), job_name=resolver.task_type,
                         task_index=resolver.task_id, protocol="grpc").join()
if "ps" in cluster:
    strategy = tf.distribute.ParameterServerStrategy(resolver)
elif sum(map(len, cluster.values())) > 1:
    strategy = tf.distribute.MultiWorkerMirroredStrategy(cluster_resolver=resolver)
else:
    strategy = tf.distribute.get_strategy()

(images, labels), _ = tf.keras.datasets.mnist.load_data()
data = tf.data.Dataset.from_tensor_slices((images / 255.0, labels))
data = data.shuffle(10000).repeat().batch(64)
with strategy.scope():
    model = tf.keras.Sequential([tf.keras.layers.Flatten(input_shape=(28, 28)),
                                 tf.keras.layers.Dense(128, activation="relu"),
                                 tf.keras.layers.Dense(10)])
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizer="sgd", loss=loss, metrics=["accuracy"])
model.fit(data, epochs=3, steps_per_epoch=200, verbose=2)
