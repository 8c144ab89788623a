# SPDX-License-Identifier: Apache-2.0
"""sonde export -f collectives: bandwidth by size, by NCCL's definitions."""

import math
import re
from xml.etree import ElementTree

import pytest
from trace_files import write_kineto

SVG = "{http://www.w3.org/2000/svg}"
RANKS = 4
# Name, elements of 4 bytes in and out, microseconds, factor of the bus.
KINDS = [("all_reduce", 1 << 10, 1 << 10, 20, 1.5), ("all_reduce", 1 << 20, 1 << 20, 100, 1.5),
         ("_allgather_base", 1 << 18, 1 << 20, 80, 0.75)]


def rank_events(rank, sized=True):
    """Each kind twice; the rank that begins last takes the transfer's time, the others 5 us more a rank."""
    events = []
    for number, (name, elements_in, elements_out, duration_us, _) in enumerate(KINDS * 2, 1):
        end_us, late_us = 1000 * number, 5 * (RANKS - 1 - rank)
        size = {"In msg nelems": elements_in, "Out msg nelems": elements_out, "dtype": "Float"} if sized else {}
        events.append({"ph": "X", "cat": "kernel", "name": f"ncclDevKernel_{name}_RING_LL(int)", "pid": 0, "tid": 7,
                       "ts": end_us - duration_us - late_us, "dur": duration_us + late_us,
                       "args": {"device": 0, "stream": 7, "correlation": number, "Collective name": name,
                                "Process Group Name": "0", "Group size": RANKS, "Seq": number, **size}})
    return events


def write_job(folder, **options):
    folder.mkdir()
    for rank in range(RANKS):
        write_kineto(folder / f"rank{rank}.json", rank_events(rank, **options),
                     distributedInfo={"rank": rank, "world_size": RANKS})
    return folder


def read_points(text):
    """(class, title's first line, x, y) of each point, and the axes: pixels of powers of ten."""
    root = ElementTree.fromstring(text)
    points = [(circle.get("class"), circle.find(f"{SVG}title").text, float(circle.get("cx")), float(circle.get("cy")))
              for circle in root.iter(f"{SVG}circle") if circle.find(f"{SVG}title") is not None]
    return root, points


def test_points_lie_where_the_figures_are(sonde, tmp_path):
    job, picture = write_job(tmp_path / "job"), tmp_path / "job.collectives.svg"
    sonde("export", "-o", picture, job, check=0)
    root, points = read_points(picture.read_text())
    assert len(points) == 2 * len(KINDS)
    kinds = sonde("report", "--json", "--by", "stragglers", job, check=0).json()["ranks"]["collectives"]["kinds"]
    xs, ys = zip(*[(x, y) for _, _, x, y in points])
    assert all(0 < x < 1200 for x in xs) and all(0 < y < 760 for y in ys)
    places = {}
    for name, _, elements_out, duration_us, factor in KINDS:
        size = 4 * elements_out
        (kind,) = [kind for kind in kinds if kind["bytes"] == size and kind["name"].endswith(name)]
        algorithm = size / (duration_us * 1e-6) / 1e9
        assert kind["algorithm_bandwidth"] == pytest.approx(algorithm) and kind["count"] == 2
        assert kind["bus_bandwidth"] == pytest.approx(algorithm * factor)
        for label, figure in (("algorithm", algorithm), ("bus", algorithm * factor)):
            (found,) = [point for point in points if point[0] == label and f"{size} bytes" in point[1] and name in point[1]]
            assert f"{label} {figure:.4g} GB/s" in found[1] and "2 times" in found[1]
            places[name, size, label] = (found[2], found[3], size, figure)
    a, b = places["all_reduce", 4096, "bus"], places["all_reduce", 4 << 20, "algorithm"]
    c = places["_allgather_base", 4 << 20, "bus"]
    assert (b[0] - a[0]) / math.log10(b[2] / a[2]) == pytest.approx((1200 - 84 - 24) / 4, abs=0.2), "4 decades of bytes"
    assert (a[1] - b[1]) / math.log10(b[3] / a[3]) == pytest.approx((a[1] - c[1]) / math.log10(c[3] / a[3]), rel=0.01)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert "byte/s" in texts and "bytes of a rank" in texts and "3 kinds of collectives" in texts
    assert len([line for line in root.iter(f"{SVG}line") if line.get("class") == "series"]) == 1, "of two sizes"


def test_names_are_escaped(sonde, tmp_path):
    folder = tmp_path / "hostile"
    folder.mkdir()
    for rank in range(2):
        events = rank_events(rank)
        for event in events:
            event["args"].update({"Process Group Name": "<script>&", "Group size": 2})
        write_kineto(folder / f"rank{rank}.json", events, distributedInfo={"rank": rank, "world_size": 2})
    text = sonde("export", "-f", "collectives", "-o", "-", folder, check=0).stdout
    assert "<script" not in text and "&lt;script&gt;&amp;" in text and read_points(text)[1]


def test_what_cannot_be_drawn_says_why(sonde, tmp_path):
    job = write_job(tmp_path / "job", sized=False)
    refused = sonde("export", "-f", "collectives", "-o", "-", job, check=1).stderr
    assert "no collective here says its size" in refused
    one = sonde("export", "-f", "collectives", "-o", "-", job / "rank0.json", check=1).stderr
    assert "give the files of all ranks" in one


def test_the_format_is_offered(sonde):
    assert re.search(r"collectives +an SVG", sonde("export", "--help", check=0).stdout)
