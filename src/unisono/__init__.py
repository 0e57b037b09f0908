"""Unisono trains image classifiers data-parallel; the same recipe gives the same model on any number of cards."""

__version__ = "0.1.0"
