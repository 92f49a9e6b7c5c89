"""Devices by ssh, adb and command, against real clients and servers of this machine."""
