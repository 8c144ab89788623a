# SPDX-License-Identifier: Apache-2.0
"""Windows of a continuous recording that are delivered elsewhere: to folders and by HTTP, whatever the receiver does."""

import os
import re
import signal

import pytest
from receiver_double import ReceiverDouble
from test_continuous import wait_for, windows

TOKEN = "a-token-that-nobody-sees"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "windows"


@pytest.fixture
def receiver():
    made = []

    def make(*answers, **options):
        made.append(ReceiverDouble(answers or (200,), **options))
        return made[-1]

    yield make
    for double in made:
        double.close()


@pytest.fixture
def arguments(folder, workload):
    """The command line of a recording of `seconds`, a window for each."""

    def make(*options, seconds=3):
        return ["record", "--continuous", "--every", "1s", "-o", folder, *options, "--", *workload("spin", seconds)]

    return make


@pytest.fixture
def start(sonde, tmp_path):
    """start(*arguments) -> the process, what it has said so far (a function), and how to end the recording."""

    def run(*arguments):
        said = tmp_path / "said"
        with said.open("w") as stderr:
            process = sonde.start(*arguments, stderr=stderr)

        def end():
            process.send_signal(signal.SIGINT)
            process.wait(240)
            return said.read_text()

        return process, said.read_text, end

    return run


def queue(folder):
    return sorted(path.name for path in (folder / "queue").glob("*/*.pftrace"))


def test_to_a_folder(sonde, report, folder, arguments, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    done = sonde(*arguments("--upload", other), check=0)
    made = windows(folder)
    assert [path.name for path in sorted(other.iterdir())] == [path.name for path in made]
    for path in made:
        assert (other / path.name).read_bytes() == path.read_bytes()
        report(other / path.name)
    assert queue(folder) == []
    assert f"sonde: {len(made)} windows delivered to {other}" in done.stderr


def test_by_http_with_a_token(sonde, folder, arguments, receiver, tmp_path):
    double, secret = receiver(), tmp_path / "token"
    secret.write_text(TOKEN + "\n")
    sonde(*arguments("--upload", double.url + "/captures", "--token-file", secret), check=0)
    made = windows(folder)
    taken = double.taken()
    assert sorted(request.path for request in taken) == [f"/captures/{path.name}" for path in made]
    contents = {path.name: path.read_bytes() for path in made}
    for request in taken:
        assert request.method == "PUT" and request.headers["Authorization"] == f"Bearer {TOKEN}"
        assert request.body == contents[request.path.rsplit("/")[-1]]


def test_the_token_is_nowhere(sonde, folder, receiver, workload):
    double = receiver()
    process = sonde.start("record", "--continuous", "--every", "1s", "-o", folder, "--upload", double.url, "--uncompressed",
                          "--", *workload("spin", 60), env={"SONDE_TOKEN": TOKEN})
    wait_for(double.taken)
    children = open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
    assert len(children) == 2, "the sender and the command"
    for pid in [str(process.pid), *children]:
        assert TOKEN not in open(f"/proc/{pid}/cmdline").read()
    command = next(pid for pid in children if open(f"/proc/{pid}/comm").read() == "spin\n")
    assert TOKEN not in open(f"/proc/{command}/environ").read()
    request = double.taken()[0]
    assert request.headers["Authorization"] == f"Bearer {TOKEN}"
    assert TOKEN.encode() not in request.body
    assert not any(TOKEN.encode() in path.read_bytes() for path in (folder / "queue").rglob("*") if path.is_file())


@pytest.mark.parametrize("answer", [500, 503, 401, (429, {"Retry-After": "1"}), "cut"])
def test_a_receiver_that_fails_once(start, folder, arguments, receiver, answer):
    double = receiver(answer, 200)
    _, said, end = start(*arguments("--upload", double.url, seconds=600))
    wait_for(lambda: len(double.taken()) >= 2 and f"{double.url} takes windows again" in said())
    account = end()
    names, delivered = {path.name for path in windows(folder)}, {request.path[1:] for request in double.taken()}
    # On a busy machine there may be no time for the last ones; one that was just taken may wait, too.
    assert delivered <= names and delivered | set(queue(folder)) == names
    assert re.search(r"; [1-9]\d* attempts? failed", account)


def test_a_receiver_that_never_answers_does_not_hold_up_the_recording(sonde, report, folder, arguments, receiver):
    double = receiver("hang")
    done = sonde(*arguments("--upload", double.url), check=0, env={"SONDE_PUSH_TIMEOUT_MS": "1000"}, timeout=60)
    made = windows(folder)
    assert len(made) >= 3 and all(report(path)["losses"]["recording_complete"] for path in made)
    assert queue(folder) == [path.name for path in made], "all wait"
    assert "windows wait in" in done.stderr and "wait for the next recording in this folder" in done.stderr


def test_a_receiver_that_does_not_want_a_window(sonde, folder, arguments, receiver):
    double = receiver(413, 200)
    done = sonde(*arguments("--upload", double.url), check=0)
    first, *others = [path.name for path in windows(folder)]
    assert [request.path[1:] for request in double.taken()] == others and queue(folder) == []
    assert f"answers 413: the double says no: {first} is dropped" in done.stderr
    assert "; 1 were rejected" in done.stderr


def test_a_queue_survives_the_recorder(sonde, folder, arguments, receiver):
    double = receiver()
    address = double.url
    double.close()  # nobody listens
    sonde(*arguments("--upload", address), check=0)
    waiting = queue(folder)
    assert waiting == [path.name for path in windows(folder)] and waiting
    again = receiver(200, port=double.port)
    sonde(*arguments("--upload", address, seconds=1), check=0)
    assert [request.path[1:] for request in again.taken()][: len(waiting)] == waiting, "the oldest first"
    assert queue(folder) == []


def test_killed_in_an_upload(sonde, folder, arguments, receiver):
    double = receiver("hang")
    process = sonde.start(*arguments("--upload", double.url, seconds=60))
    wait_for(lambda: double.requests)
    (sender,) = [pid for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
                 if open(f"/proc/{pid}/comm").read() == "sonde-sender\n"]
    process.kill()
    process.wait()
    wait_for(lambda: not os.path.exists(f"/proc/{sender}") or
             open(f"/proc/{sender}/stat").read().rsplit(")", 1)[1].split()[0] == "Z")
    waiting = queue(folder)
    assert waiting, "what was not delivered stays in the queue"
    double.close()
    again = receiver(200, port=double.port)
    sonde(*arguments("--upload", double.url, seconds=1), check=0)
    assert set(waiting) <= {request.path[1:] for request in again.taken()}


def test_a_sender_that_is_killed_is_reported(sonde, folder, arguments, receiver):
    double = receiver()
    process = sonde.start(*arguments("--upload", double.url, seconds=60))
    wait_for(double.taken)
    (sender,) = [pid for pid in open(f"/proc/{process.pid}/task/{process.pid}/children").read().split()
                 if open(f"/proc/{pid}/comm").read() == "sonde-sender\n"]
    os.kill(int(sender), signal.SIGKILL)
    assert "the process that sends windows was ended by signal 9" in process.stderr.readline()


def test_what_is_removed_before_it_is_delivered_is_counted(start, folder, arguments, receiver):
    double = receiver(503)
    _, said, end = start(*arguments("--upload", double.url, "--keep", "1", seconds=600))
    wait_for(lambda: "was removed before" in said())
    double.answers[:] = [200]
    wait_for(double.taken)
    account = end()
    assert "was removed before" in account and "windows are dropped; keep more (--keep)" in account
    assert re.search(r"; [1-9]\d* were removed before \(--keep\)", account)


def test_a_folder_that_is_gone_and_comes_back(sonde, folder, arguments, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    process = sonde.start(*arguments("--upload", other, seconds=60))
    wait_for(lambda: list(other.iterdir()))
    other.rename(tmp_path / "away")
    assert f"{other}: No such file or directory; windows wait in {folder}/queue" in process.stderr.readline()
    (tmp_path / "away").rename(other)
    assert f"{other} takes windows again" in process.stderr.readline()


def test_links_in_the_queue_are_not_followed(sonde, folder, arguments, receiver, tmp_path):
    double, outside = receiver(), tmp_path / "outside"
    outside.write_text("mine")
    sonde(*arguments("--upload", double.url, seconds=1), check=0)
    (own,) = (folder / "queue").iterdir()
    (own / "host-20200101T000000Z-000001.pftrace").symlink_to(outside)
    (own / "host-20200101T000000Z-000002.pftrace").write_text("")
    (folder / "host-20200101T000000Z-000002.pftrace").symlink_to(outside)
    sonde(*arguments("--upload", double.url, seconds=1), check=0)
    assert not any(b"mine" in request.body for request in double.taken())
    assert outside.read_text() == "mine" and (own / "host-20200101T000000Z-000001.pftrace").is_symlink()
    assert not (own / "host-20200101T000000Z-000002.pftrace").exists(), "its window is no file: it was dropped"
    moved = tmp_path / "moved"
    (folder / "queue").rename(moved)
    (folder / "queue").symlink_to(moved)
    done = sonde(*arguments("--upload", double.url, seconds=1), check=1)
    assert "cannot open" in done.stderr


def test_a_queue_of_another_version(sonde, folder, arguments, receiver):
    double = receiver()
    sonde(*arguments("--upload", double.url, seconds=1), check=0)
    (own,) = (folder / "queue").iterdir()
    assert (own / "format").read_text() == f"sonde queue 1\n{double.url}\n"
    (own / "format").write_text("sonde queue 0\n")
    done = sonde(*arguments("--upload", double.url, seconds=1), check=1)
    assert "is not a queue of this version of sonde" in done.stderr and "remove it" in done.stderr


@pytest.mark.parametrize("address, sentence", [
    ("http://user:secret@127.0.0.1/", "would be seen in lists of processes"),
    ("ftp://127.0.0.1/", "is not a URL"),
    ("http:///path", "names no host"),
    ("http://127.0.0.1/a b", "a URL has no spaces"),
    ("missing/folder", "make the folder first, or mount it"),
])
def test_addresses_that_are_wrong(sonde, arguments, address, sentence):
    done = sonde(*arguments("--upload", address))
    assert done.status != 0 and sentence in done.stderr and "secret" not in done.stderr


def test_a_receiver_that_is_given_twice(sonde, arguments, receiver):
    double = receiver()
    done = sonde(*arguments("--upload", double.url, "--upload", double.url))
    assert done.status != 0 and f"{double.url} is given twice" in done.stderr


def test_a_token_that_is_none(sonde, arguments, receiver, tmp_path):
    secret = tmp_path / "token"
    for text in ("", "two words", "línea"):
        secret.write_text(text)
        done = sonde(*arguments("--upload", receiver().url, "--token-file", secret))
        assert done.status != 0 and "the token in" in done.stderr
    done = sonde(*arguments("--upload", receiver().url, "--token-file", tmp_path / "none"))
    assert done.status != 0 and "cannot read --token-file" in done.stderr


