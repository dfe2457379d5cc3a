"""The parts of `gp.py`: each measures one thing and shows it in tables; plots are drawn apart."""
