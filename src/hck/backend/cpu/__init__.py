"""Code that numba compiles for the processor at hand; imported when it is first used."""
