"""A comparison in two worlds, a guest kernel among them."""

import schedlab as lab


def test_the_simulator_and_a_guest_give_one_table_and_a_refusal_is_a_row():
    results = lab.compare("yield:2", ["eevdf", "kernel:other"], on=["sim", "vm"], ensemble=1, cpus=1)
    worlds = {(row["world"].split(":")[0], row["candidate"]) for row in results.rows if row["value"] is not None}
    assert worlds == {("sim", "eevdf"), ("vm", "eevdf"), ("vm", "kernel:other")}
    refused = [row["note"] for row in results.rows if (row["note"] or "").startswith("not run")]
    assert len(refused) == 1 and "kernel:other is a class of a real kernel" in refused[0]
    assert 1000 < results.value("instructions_per_yield", candidate="kernel:other") < 10_000
