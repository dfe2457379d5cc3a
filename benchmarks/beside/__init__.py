"""The parts of tabular.py."""
