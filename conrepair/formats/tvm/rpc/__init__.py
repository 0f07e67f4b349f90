"""Devices that TVM reaches over its RPC."""
