"""Requests to a language model that llama.cpp runs, on weights from a seed or on the user's own."""
