"""Code that Triton compiles for a GPU; imported when it is first used."""
