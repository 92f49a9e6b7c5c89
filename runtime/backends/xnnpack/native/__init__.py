"""The engine that runs payloads on the native kernels of an installed wheel, in a child process."""
