"""A convolutional network on random pictures, as in Keras' first example, on the framework that is there."""

import os
import sys
from importlib.util import find_spec

sys.path.append("keras")  # of this folder
os.environ["KERAS_BACKEND"] = "torch" if find_spec("torch") else "jax"

import keras
import numpy as np
from keras import layers

rng = np.random.default_rng(0)
x = rng.random((2048, 28, 28, 1), dtype="float32")
y = keras.utils.to_categorical(rng.integers(0, 10, 2048), 10)
model = keras.Sequential(
    [
        keras.Input((28, 28, 1)),
        layers.Conv2D(16, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Conv2D(32, 3, activation="relu"),
        layers.MaxPooling2D(2),
        layers.Flatten(),
        layers.Dropout(0.5),
        layers.Dense(10, activation="softmax"),
    ]
)
model.compile(loss="categorical_crossentropy", optimizer="adam", metrics=["accuracy"])
model.fit(x, y, batch_size=64, epochs=3, verbose=0)
