"""A Keras script that knows nothing of Castmates, for `castmates profile` (docs/operations.md).

castmates profile --environment tfmodels --beside stream,chase -- python examples/keras_train.py
"""

import numpy as np

try:
    import keras
except ModuleNotFoundError:  # the environment `tfmodels` has Keras 2 alone
    import tf_keras as keras

dice = np.random.default_rng(1)
images = dice.random((8192, 32, 32, 3), dtype=np.float32)
classes = dice.integers(0, 10, 8192)
model = keras.Sequential(
    [
        keras.layers.Conv2D(32, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Conv2D(64, 3, activation="relu"),
        keras.layers.MaxPooling2D(),
        keras.layers.Flatten(),
        keras.layers.Dense(256, activation="relu"),
        keras.layers.Dense(10),
    ]
)
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
model.fit(images, classes, batch_size=32, epochs=2, verbose=2)
