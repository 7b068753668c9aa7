"""Reads machines: their dumps and their /sys, merged into one System with the source of every fact."""
