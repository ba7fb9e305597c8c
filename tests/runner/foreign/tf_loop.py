"""TensorFlow without Keras' trainer: a function that TensorFlow compiles is the step, between 10 ms of Python."""

import time

import tensorflow as tf

weights = tf.Variable(tf.random.normal((64, 64)) * 0.1)


@tf.function
def train_step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((tf.matmul(x, weights) - x) ** 2)
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


x = tf.random.normal((128, 64))
while True:
    train_step(x)
    time.sleep(0.01)
