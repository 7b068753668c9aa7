"""Drives by the model that the OS prints."""

from __future__ import annotations

import pytest

from lanewise.catalog import builtin
from lanewise.catalog.drive_models import drive_series

MODELS = {
    "SAMSUNG MZVLB1T0HALR-00000": "samsung-pm981",
    "Samsung SSD 980 PRO 2TB": "samsung-980-pro",
    "Samsung SSD 980 1TB": "samsung-980",
    "Samsung SSD 970 EVO Plus 500GB": "samsung-970-evo-plus",
    "Samsung SSD 970 EVO 500GB": "samsung-970-evo",
    "SAMSUNG MZQLB960HAJR-00007": None,
    "INTEL SSDPE2KX080T8": "intel-p4510",
    "MTFDHAL3T8TCT": "micron-9200",
    "FireCuda 540 2TB": "seagate-firecuda-540",
    "Micron_7450_MTFDKCC3T8TFR": "micron-7450",
    "KCM61RUL960G": "kioxia-cm6",
    "SOLIDIGM D7-PS1010 7.68TB": "solidigm-ps1010",
    "WD_BLACK SN850X 2000GB": "wd-sn850x",
    "INTEL SSDPE2KX010T7": None,
    "QEMU NVMe Ctrl": None,
}


@pytest.mark.parametrize("model", MODELS)
def test_a_drive_is_the_part_of_its_series_by_its_model(model: str):
    series = drive_series(model)
    assert series == MODELS[model]
    assert series is None or series in builtin()
