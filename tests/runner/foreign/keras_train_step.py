"""A model of Keras that says itself what a training step is, and has a metric; its last batch is smaller."""

import numpy as np
import tensorflow as tf
import tf_keras as keras


class Denoiser(keras.Model):
    def __init__(self):
        super().__init__()
        self.encode = keras.layers.Dense(128, "relu")
        self.decode = keras.layers.Dense(64)
        self.error = keras.metrics.Mean()

    def call(self, x):
        return self.decode(self.encode(x))

    def train_step(self, x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x + tf.random.normal(tf.shape(x)) * 0.1) - x) ** 2)
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.error.update_state(loss)
        return {"error": self.error.result()}


model = Denoiser()
model.compile(keras.optimizers.Adam())
model.fit(np.random.rand(650, 64).astype("float32"), batch_size=64, epochs=5, verbose=0)
