"""A loop of the program around train_on_batch; each batch takes 10 ms of Python."""

import time

import numpy as np
import tf_keras as keras

model = keras.Sequential([keras.layers.Dense(32, "tanh", input_shape=(16,)), keras.layers.Dense(4, "softmax")])
model.compile("sgd", "sparse_categorical_crossentropy")
while True:
    time.sleep(0.01)
    model.train_on_batch(np.ones((8, 16), "float32"), np.zeros(8, "int64"))
