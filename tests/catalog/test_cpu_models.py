"""CPUs by the model number that a manual or /proc/cpuinfo prints."""

from __future__ import annotations

import pytest

from lanewise.catalog import builtin
from lanewise.catalog.cpu_models import generation_of, generations_of_maker
from lanewise.errors import UnknownName

MODELS = {
    "EPYC 9554": "genoa",
    "epyc-9554": "genoa",
    "AMD EPYC 9575F 64-Core Processor": "turin",
    "AMD EPYC 7763 64-Core Processor": "milan",
    "AMD EPYC 7V12 64-Core Processor": "rome",
    "EPYC 7742": "epyc-7742",
    "EPYC 7601": "naples",
    "Intel(R) Xeon(R) Platinum 8480C": "sapphire-rapids",
    "xeon-platinum-8168": "skylake-sp",
    "Intel(R) Xeon(R) Platinum 8358 CPU @ 2.60GHz": "ice-lake-sp",
    "Intel(R) Xeon(R) Gold 6248 CPU @ 2.50GHz": "cascade-lake-sp",
    "Intel(R) Xeon(R) CPU E5-2698 v4 @ 2.20GHz": "broadwell-ep",
    "Xeon E5-2690 v3": "haswell-ep",
    "Xeon Gold 6530": "xeon-gold-6530",
    "Intel(R) Xeon(R) 6787P": "granite-rapids-sp",
    "Xeon 6 6517P": "granite-rapids-sp",
    "Intel(R) Xeon(R) 6980P": "granite-rapids",
    "Intel(R) Xeon(R) w9-3495X": "xeon-w-sapphire-rapids",
    "AMD Ryzen Threadripper PRO 7955WX 16-Cores": "threadripper-pro-7000",
    "AMD Ryzen Threadripper 1900X 8-Core Processor": "threadripper-1000",
    "AMD Ryzen Threadripper 1950X 16-Core Processor": "threadripper-1000",
    "AMD Ryzen Threadripper 2950X 16-Core Processor": "threadripper-2000",
    "AMD Ryzen 9 3900X 12-Core Processor": "ryzen-am4",
    "AMD Ryzen 7 2700X Eight-Core Processor": "ryzen-2000",
    "Ryzen 9 7950X3D": "ryzen-am5",
    "AMD EPYC 8534P 64-Core Processor": "siena",
    "AMD EPYC 4564P 16-Core Processor": "ryzen-am5",
    "AMD EPYC 4565P 16-Core Processor": "ryzen-9000",
    "AMD Ryzen 9 9950X3D 16-Core Processor": "ryzen-9000",
    "Ryzen 5 9600X": "ryzen-9000",
    "13th Gen Intel(R) Core(TM) i9-13900K": "core-12-to-14",
    "Core i7-14700KF": "core-12-to-14",
    "11th Gen Intel(R) Core(TM) i5-11600K": "core-11",
    "Intel(R) Core(TM) i7-8700K CPU @ 3.70GHz": "core-6-to-10",
    "Intel(R) Core(TM) i9-10900K CPU @ 3.70GHz": "core-6-to-10",
    "Intel(R) Core(TM) i9-10980XE CPU @ 3.00GHz": "xeon-w-2200",
    "Intel(R) Core(TM) i7-6900K CPU @ 3.20GHz": "broadwell-e",
    "Intel(R) Core(TM) i7-5960X CPU @ 3.00GHz": "haswell-e",
    "Intel(R) Core(TM) Ultra 7 265K": "core-ultra-200s",
    "Intel(R) Xeon(R) W-2135 CPU @ 3.70GHz": "xeon-w-2200",
    "Intel(R) Xeon(R) W-3265 CPU @ 2.70GHz": "xeon-w-3200",
    "Intel(R) Xeon(R) W-3175X CPU @ 3.10GHz": "xeon-w-3100",
    "Intel(R) Xeon(R) CPU E5-1650 v4 @ 3.60GHz": "broadwell-e",
    "Intel(R) Xeon(R) CPU Max 9470C": "sapphire-rapids",
}


@pytest.mark.parametrize(("model", "part"), MODELS.items())
def test_a_model_number_names_its_generation(model: str, part: str) -> None:
    assert model in builtin()
    assert builtin().get(model).name == part


@pytest.mark.parametrize("model", ["EPYC 9", "Xeon Platinum 8376H", "Xeon 6780E", "EPYC 95540", "Xeon", ""])
def test_a_model_that_no_rule_knows_is_unknown(model: str) -> None:
    assert generation_of(model) is None
    assert model not in builtin()
    with pytest.raises(UnknownName):
        builtin().get(model)


def test_every_rule_names_a_part_that_ships() -> None:
    assert all(builtin().get(part).kind == "cpu" for part in MODELS.values())


def test_a_part_of_that_name_comes_before_the_rule() -> None:
    own = builtin().with_part(builtin().get("genoa"))
    mine = own.merge(type(own)({"EPYC 9554": type(own.get("genoa"))("EPYC 9554", "cpu", "mine")}))
    assert mine.get("epyc 9554").title == "mine"


@pytest.mark.parametrize(
    ("text", "gen4"),
    [
        ("Intel", "ice-lake-sp"),
        ("Intel(R) Xeon(R) CPU", "ice-lake-sp"),
        ("intel-xeon gold", "ice-lake-sp"),
        ("AMD EPYC", "rome-or-milan"),
        ("EPYC", "rome-or-milan"),
        ("AMD Ryzen", None),
        ("Xeon EPYC", None),
        ("Xeon 6780E", None),
        ("gold", None),
        ("", None),
    ],
)
def test_a_maker_alone_leaves_the_generation_to_the_slots(text: str, gen4: str | None) -> None:
    parts = generations_of_maker(text)
    assert parts.get(4) == gen4
    assert all(builtin().get(part).number("pcie.gen") == gen for gen, part in parts.items())
