"""The engine that runs payloads by the real kernels of an installed wheel, in a process apart."""
