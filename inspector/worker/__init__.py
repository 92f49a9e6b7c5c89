"""The child process of a job: it may import torch and the compiler, and may crash."""
