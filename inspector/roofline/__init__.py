"""Work of operators (FLOPs, bytes) beside their time, and the limits of the machine they ran on."""
