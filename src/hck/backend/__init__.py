"""The machines: devices, threads, memory, and the code that is compiled for them."""
