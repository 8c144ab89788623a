# SPDX-License-Identifier: Apache-2.0
"""Live messages at /ws: clients that stall, leave and come back. A test double publishes (tests/doubles/server)."""

import os
import subprocess
import threading

import pytest
from server_client import Server, WebSocket

MUST_KEEP, LATEST_WINS, DROP_FIRST = range(3)


class Publisher(Server):
    def publish(self, kind, message_class, count, size=20):
        """The number of the last message, when all were published."""
        self.process.stdin.write(f"{kind} {message_class} {count} {size}\n")
        self.process.stdin.flush()
        words = self.process.stdout.readline().split()
        assert words[0] == "published"
        return int(words[1])

    def memory_bytes(self):
        with open(f"/proc/{self.process.pid}/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")


@pytest.fixture
def publisher(sonde_path):
    program = sonde_path.parent / "tests" / "doubles" / "server" / "server-publisher"
    if not program.exists():
        pytest.skip("the double was not built")
    process = subprocess.Popen([program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    server = Publisher(process)
    yield server
    assert server.end() == 0, process.stderr.read()


def numbers(client, newest):
    """(seqs, gaps) up to the message `newest`, or to the end of the connection."""
    seqs, gaps = [], []
    while (message := client.next()) is not None:
        if message["type"] == "gap":
            gaps.append(message["data"])
        elif message["seq"]:
            seqs.append(message["seq"])
        if seqs and seqs[-1] >= newest or gaps and gaps[-1]["to"] >= newest:
            break
    return seqs, gaps


def check_complete(first, newest, seqs, gaps):
    """Each number once, or in a gap; and gaps say how many."""
    assert len(seqs) == len(set(seqs))
    missing = set(range(first, newest + 1)) - set(seqs)
    assert all(any(gap["from"] <= seq <= gap["to"] for gap in gaps) for seq in missing)
    assert len(missing) == sum(gap["count"] for gap in gaps)


def test_all_messages_in_order(publisher):
    client = publisher.socket()
    hello = client.next()
    assert hello["type"] == "hello" and hello["v"] == 1 and client.next()["type"] == "snapshot"
    newest = publisher.publish("token", MUST_KEEP, 3000)
    seqs, gaps = numbers(client, newest)
    assert seqs == list(range(1, newest + 1)) and not gaps


def test_the_latest_in_a_snapshot(publisher):
    publisher.publish("power", LATEST_WINS, 10)
    newest = publisher.publish("token", MUST_KEEP, 5)
    client = publisher.socket()
    assert client.next()["data"]["newest_seq"] == newest
    assert client.next()["data"] == {"types": 1, "newest_seq": newest}
    assert client.next()["seq"] == 10


def test_a_client_that_comes_back(publisher):
    client = publisher.socket()
    epoch = client.next()["epoch"]
    client.close()
    newest = publisher.publish("token", MUST_KEEP, 2000, 100)
    client = publisher.socket(f"/ws?epoch={epoch}&seq=500")
    assert client.next()["type"] == "hello"
    assert numbers(client, newest) == (list(range(501, newest + 1)), [])
    other = publisher.socket("/ws?epoch=another&seq=500")
    assert [other.next()["type"] for _ in range(2)] == ["hello", "snapshot"]
    gap = other.next()
    assert gap["type"] == "gap" and gap["data"]["reason"] == "new-epoch" and gap["data"]["to"] == newest


def test_what_is_no_longer_kept(publisher):
    epoch = publisher.socket().next()["epoch"]
    newest = publisher.publish("token", MUST_KEEP, 300, 100_000)
    client = publisher.socket(f"/ws?epoch={epoch}&seq=1")
    hello = client.next()
    assert hello["data"]["oldest_seq"] > 2
    assert client.next()["type"] == "snapshot"
    assert client.next()["data"] == {"from": 2, "to": newest, "count": newest - 1, "reason": "too-old"}


def test_stalled_clients_cost_nobody_else(publisher):
    """20 clients that take nothing, 5 that do: those get all, the server's memory is bounded, the others get a gap and are closed."""
    headers = publisher.headers()
    stalled = [WebSocket(publisher, "/ws", headers, receive_bytes=4096) for _ in range(20)]
    good = [publisher.socket() for _ in range(5)]
    results = {}
    newest_of_all = threading.Event()

    def listen(number, client):
        seqs, gaps = [], []
        while (message := client.next()) is not None:
            if message["type"] == "end":
                break
            if message["type"] == "gap":
                gaps.append(message["data"])
            elif message["seq"]:
                seqs.append(message["seq"])
        results[number] = (seqs, gaps)

    threads = [threading.Thread(target=listen, args=(number, client), daemon=True) for number, client in enumerate(good)]
    for thread in threads:
        thread.start()
    newest, rounds = 0, 0
    # Until the server has closed all that are stalled: their number is in its status.
    while publisher.get("/api/status").json()["clients"] > len(good):
        newest = publisher.publish("token", MUST_KEEP, 20, 2000)
        publisher.publish("stats", DROP_FIRST, 20, 2000)
        publisher.publish("power", LATEST_WINS, 20, 2000)
        rounds += 1
        assert rounds < 100_000
        newest_of_all.wait(0.05)
    publisher.publish("end", MUST_KEEP, 1)
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()
    for seqs, gaps in results.values():
        check_complete(1, newest + 40, seqs, gaps)
    # Of 25 clients with 1 MB each, and what is kept for those that come back.
    assert publisher.memory_bytes() < 200 << 20
    for client in stalled:
        client.close()


def test_a_reconnect_storm(publisher):
    """200 clients drop and return, again and again, while messages come: each gets every number once, or in a gap."""
    epoch = publisher.socket().next()["epoch"]
    seen = {number: ([], []) for number in range(200)}
    last = dict.fromkeys(seen, 0)
    newest = publisher.publish("token", MUST_KEEP, 50, 100)
    for _ in range(4):
        clients = {number: publisher.socket(f"/ws?epoch={epoch}&seq={last[number]}") for number in seen}
        newest = publisher.publish("token", MUST_KEEP, 50, 100)
        for number, client in clients.items():
            assert client.answer.status == 101
            # Some leave in the middle.
            seqs, gaps = numbers(client, newest if number % 3 else newest - 20)
            seen[number][0].extend(seqs)
            seen[number][1].extend(gaps)
            last[number] = max([last[number], *seqs, *(gap["to"] for gap in gaps)])
            client.close()
    for number, (seqs, gaps) in seen.items():
        check_complete(1, last[number], seqs, gaps)
        assert not gaps and last[number] >= newest - 20


def test_the_server_says_goodbye(publisher):
    client = publisher.socket()
    assert client.next()["type"] == "hello" and client.next()["type"] == "snapshot"
    publisher.process.terminate()
    assert client.next()["data"] == {"reason": "server-ends"}
    assert client.next() is None and client.close_code in (1001, None)
