"""Pools of devices that a fabric gives to servers: blocks, compositions, and offers with predicted rates."""
