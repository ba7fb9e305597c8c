"""A loop of the program around train_on_batch; each batch takes 10 ms of Python."""

import time

import numpy as np
import tf_keras as keras

convolution = keras.layers.Conv2D(4, 3, activation="tanh", input_shape=(6, 6, 2))
model = keras.Sequential([convolution, keras.layers.Flatten(), keras.layers.Dense(4, "softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
while True:
    time.sleep(0.01)
    model.train_on_batch(np.ones((8, 6, 6, 2), "float32"), np.zeros(8, "int64"))
