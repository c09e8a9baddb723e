"""Prints the segments of a result as throughput traces, one line for each client of a cell:
its name, the median time to first byte in milliseconds, and the kbit/s of each second.
A segment's bytes count evenly from its first byte to its last one."""

import json
import statistics
import sys

import pyarrow.parquet

SECOND_NS = 1_000_000_000

folder = sys.argv[1]
plan = json.load(open(f"{folder}/plan.json"))
rows = pyarrow.parquet.read_table(f"{folder}/samples/requests.parquet").to_pylist()


def name(cell, client):
    levels = {level["factor"]: level["value"] for level in plan["cells"][cell]["levels"]}
    return f"{levels['network']}-{client}-{levels['variant']}"


segments = {}
for row in rows:
    if row["status"] == 200 and row["response_body_bytes"] > 10_000:
        segments.setdefault((row["cell"], row["client"]), []).append(row)
for (cell, client), of_client in sorted(segments.items()):
    start = min(row["first_byte_ns"] for row in of_client)
    bits = {}
    for row in of_client:
        begin, end = row["first_byte_ns"] - start, max(row["done_ns"], row["first_byte_ns"] + 1) - start
        rate = row["response_body_bytes"] * 8 / (end - begin)
        at = begin
        while at < end:
            second = at // SECOND_NS
            until = min(end, (second + 1) * SECOND_NS)
            bits[second] = bits.get(second, 0) + rate * (until - at)
            at = until
    # The last second is not full.
    rates = [round(bits.get(second, 0) / 1000) for second in range(max(bits))]
    waits = [(row["first_byte_ns"] - row["sent_ns"]) / 1e6 for row in of_client]
    print(name(cell, client), round(statistics.median(waits)), *rates, sep=",")
