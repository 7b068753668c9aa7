"""Parts by the PCI ids of their devices, after the PCI ID repository (pci.ids of 2026-08-22)."""

from __future__ import annotations

# PLX's model numbers are their device ids.
PARTS = {
    "10de:1023": "k40", "10de:1024": "k40", "10de:102d": "k80", "10de:13f2": "m60", "10de:15f8": "p100-pcie",
    "10de:15f9": "p100-sxm2", "10de:1db1": "v100-sxm2", "10de:1db5": "v100-sxm2", "10de:1df5": "v100-sxm2",
    "10de:1db8": "v100-sxm3", "10de:1db4": "v100-pcie", "10de:1db6": "v100-pcie", "10de:1e02": "titan-rtx",
    "10de:1eb8": "t4", "10de:20b0": "a100-sxm-40gb", "10de:20b2": "a100-sxm-80gb", "10de:20b5": "a100-pcie-80gb",
    "10de:20b1": "a100-pcie-40gb", "10de:20f1": "a100-pcie-40gb", "10de:20b7": "a30", "10de:2230": "rtx-a6000",
    "10de:2235": "a40", "10de:2236": "a10", "10de:2237": "a10g", "10de:2204": "rtx-3090", "10de:2330": "h100-sxm",
    "10de:2331": "h100-pcie", "10de:2321": "h100-nvl", "10de:2324": "h800-sxm", "10de:2335": "h200-sxm",
    "10de:233b": "h200-nvl", "10de:2342": "gh200", "10de:2348": "gh200", "10de:2901": "b200", "10de:2941": "gb200",
    "10de:3182": "b300", "10de:31c2": "gb300", "10de:31c3": "gb300", "10de:27b8": "l4", "10de:26b5": "l40",
    "10de:26b9": "l40s", "10de:26b1": "rtx-6000-ada", "10de:2684": "rtx-4090", "10de:2b85": "rtx-5090",
    "10de:2bb1": "rtx-pro-6000-blackwell-workstation", "10de:2bb5": "rtx-pro-6000-blackwell-server",
    "10de:2bb9": "rtx-6000d", "1002:738c": "mi100", "1002:738e": "mi100", "1002:740f": "mi210", "1002:7408": "mi250x",
    "1002:740c": "mi250x", "1002:74a1": "mi300x", "1002:74a5": "mi325x", "1002:75a3": "mi355x",
    "10de:1b02": "titan-xp", "10de:1b06": "gtx-1080-ti", "10de:1b80": "gtx-1080", "10de:1b81": "gtx-1070",
    "10de:1d81": "titan-v", "10de:1e04": "rtx-2080-ti", "10de:1e07": "rtx-2080-ti", "10de:20f3": "a800-sxm",
    "10de:1df6": "v100s-pcie", "10de:2203": "rtx-3090-ti", "8086:1592": "intel-e810-100gbe",
    "14e4:1750": "bcm57508-100gbe", "14e4:1760": "bcm57608-400gbe",
    "10de:2206": "rtx-3080", "10de:2231": "rtx-a5000", "10de:24b0": "rtx-a4000", "10de:2503": "rtx-3060",
    "10de:2504": "rtx-3060", "10de:2704": "rtx-4080", "10de:2786": "rtx-4070", "10de:2803": "rtx-4060-ti",
    "15b3:1003": "connectx-3-fdr", "15b3:1011": "connect-ib-fdr",
    "15b3:1013": "connectx-4-edr", "15b3:1017": "connectx-5-edr", "15b3:101b": "connectx-6-hdr",
    "15b3:1021": "connectx-7-ndr", "15b3:1023": "connectx-8", "144d:a80c": "samsung-990-pro",
    "144d:a824": "samsung-pm1733", "144d:a826": "samsung-pm1743", "1e0f:0007": "kioxia-cm6", "10b5:8747": "pex8747",
    "10b5:8764": "pex8764", "10b5:8796": "pex8796", "10b5:9781": "pex9781", "10b5:9797": "pex9797",
}  # fmt: skip
