"""Speech over HTTP: the real binary on a loopback socket, asked by clients that behave and by ones that do not."""
import base64
import concurrent.futures
import contextlib
import http.client
import io
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time

import numpy
import pytest
import soundfile
from browser import CHROMIUM, Browser
from conftest import BINARY, HANG_S

LONG = "Rivers run by day. Sand and sea; wind and rain! All the birds sing near the river, and the river runs by. " * 30
SOME = LONG[:400]


class Server:
    def __init__(self, voice, *flags, host="127.0.0.1"):
        self.process = subprocess.Popen([BINARY, "serve", "--checkpoint", voice, "--port", "0", *map(str, flags)], stdout=subprocess.PIPE,
                                        stderr=subprocess.PIPE, text=True)
        line = self.process.stdout.readline()
        assert line.startswith("serving at http://"), self.process.stderr.read()
        self.host, self.port = host, int(re.search(r":(\d+);", line)[1])

    def ask(self, method, path, body=None, headers=None):
        """Status, headers and body."""
        connection = http.client.HTTPConnection(self.host, self.port, timeout=HANG_S)
        with contextlib.closing(connection):
            connection.request(method, path, body, headers or {})
            answer = connection.getresponse()
            return answer.status, dict(answer.getheaders()), answer.read()

    def speak(self, **fields):
        return self.post(json.dumps(fields))

    def post(self, body, kind="application/json"):
        return self.ask("POST", "/v1/audio/speech", body, {"Content-Type": kind})

    def socket(self):
        return socket.create_connection((self.host, self.port), timeout=HANG_S)

    def metric(self, name):
        text = self.ask("GET", "/metrics")[2].decode()
        return float(re.search(rf"^{re.escape(name)} (\S+)$", text, re.MULTILINE)[1])

    def until_idle(self):
        while self.metric("myxtts_queue_length") > 0:
            time.sleep(0.01)

    def stop(self, signal_number=signal.SIGTERM):
        self.process.send_signal(signal_number)
        out, err = self.process.communicate(timeout=HANG_S)
        return self.process.returncode, out, err

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process.poll() is None:
            self.process.kill()
            self.process.communicate()


@pytest.fixture(scope="module")
def server(voice):
    with Server(voice) as running:
        yield running
        assert running.stop() == (0, "stopped\n", ""), "it lived through all of it and had nothing to warn of"


def error_of(answer, status):
    """The sentence of an error that is as it should be."""
    got, headers, body = answer
    assert got == status, (got, body)
    assert headers["Content-Type"] == "application/json"
    error = json.loads(body)["error"]
    assert json.loads(body).keys() == {"error"} and error.keys() == {"message", "type", "code"}
    assert error["type"] and error["code"] and error["message"] and "\n" not in error["message"]
    return error["message"]


def clip_of(voice, seconds=None):
    path = sorted((voice.parent / "corpus" / "wavs").glob("*.wav"))[0]
    if seconds is None:
        return path.read_bytes()
    out = io.BytesIO()
    soundfile.write(out, numpy.zeros(int(seconds * 16000)), 16000, format="WAV")
    return out.getvalue()


def test_it_has_the_samples_of_synth(myxtts, server, voice, tmp_path):
    (tmp_path / "clip.wav").write_bytes(clip_of(voice))
    reference = base64.b64encode(clip_of(voice)).decode()
    for name, fields, flags in (
            ("plain", {"input": "river"}, ["--text", "river"]),
            ("long", {"input": LONG[:300]}, ["--text", LONG[:300]]),
            ("all", {"input": "sand. sea", "voice": "speaker-1", "speed": 0.5, "seed": 7, "temperature": 0.8, "steps": 2, "guidance": 1},
             ["--text", "sand. sea", "--speaker", "speaker-1", "--speed", 0.5, "--seed", 7, "--temperature", 0.8, "--steps", 2, "--guidance", 1]),
            ("persian", {"input": "سلام", "language": "fa", "model": "tts-1", "voice": "default"}, ["--text", "سلام", "--language", "fa"]),
            ("clone", {"input": "river", "reference": reference}, ["--text", "river", "--reference", tmp_path / "clip.wav"])):
        file = tmp_path / f"{name}.wav"
        myxtts("synth", "--checkpoint", voice, *flags, "--out", file)
        status, headers, wav = server.speak(**fields)
        assert status == 200 and headers["Content-Type"] == "audio/wav" and wav == file.read_bytes(), name
        status, headers, pcm = server.speak(**fields, response_format="pcm", stream=True)
        assert status == 200 and headers["Content-Type"] == "audio/pcm; rate=22050" and pcm == wav[44:], name
        assert headers["Transfer-Encoding"] == "chunked"
        assert server.speak(**fields, response_format="pcm")[2] == pcm
        streamed = server.speak(**fields, stream=True)[2]
        assert streamed[44:] == pcm and streamed[40:44] == b"\xff\xff\xff\xff"
        assert soundfile.read(io.BytesIO(wav))[1] == 22050
    assert server.metric("myxtts_audio_seconds_total") > 0 and server.metric("myxtts_first_sample_seconds_count") >= 20


def test_numbers_that_become_many_words_are_spoken_like_any_others(server, voice):
    """Each of their sentences is as short as any: the whole is neither refused nor a burden."""
    for text in ("700,700,700 " * 16, "900000000000 " * 300, "1000000 " * 500):
        with server.socket() as one:
            body = json.dumps({"input": text, "stream": True}).encode()
            one.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                        b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
            assert one.recv(4096).startswith(b"HTTP/1.1 200")
    server.until_idle()
    resident = server.metric("process_resident_memory_bytes")
    assert resident < 2e9, "attention over a whole text of numbers would take more"


def test_it_sends_the_first_samples_while_it_makes_the_others(server):
    with server.socket() as one:
        body = json.dumps({"input": LONG, "stream": True, "response_format": "pcm", "speed": 0.25}).encode()
        one.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                    b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
        start = one.recv(4096)
        assert start.startswith(b"HTTP/1.1 200")
        assert server.metric("myxtts_queue_length") == 1, "the rest is still being made"
    server.until_idle()  # a dropped connection stops its synthesis
    assert server.metric("myxtts_queue_length") == 0


def test_a_stream_breaks_off_at_a_sentence_that_cannot_be_said(server):
    with pytest.raises(http.client.IncompleteRead):
        server.speak(input="river run by. \u20ac is no letter.", stream=True)
    assert "\u20ac" in error_of(server.speak(input="river run by. \u20ac is no letter."), 400)


def test_a_voice_of_phonemes_needs_espeak_ng_when_it_starts(myxtts, tmp_path):
    if shutil.which("espeak-ng") is None:
        pytest.skip("espeak-ng is not installed: a voice of phonemes is not served")
    myxtts("demo-data", tmp_path / "corpus", "--clips", 24)
    myxtts("train", "--train-data", tmp_path / "corpus", "--device", "cpu", "--checkpoint-dir", tmp_path / "voice", "--batch-size", 4,
           "--shape-buckets", 1, "--max-mel-frames", 240, "--max-steps", 1)
    without = myxtts("serve", "--checkpoint", tmp_path / "voice", "--port", 0, status=1, env={**os.environ, "PATH": "/nowhere"})
    assert "needs espeak-ng" in without.stderr and "apt-get install espeak-ng" in without.stderr


def test_a_client_that_leaves_while_it_waits_stops_its_synthesis(voice):
    with Server(voice) as server:
        body = json.dumps({"input": LONG, "speed": 0.25}).encode()
        for _ in range(3):
            with server.socket() as one:
                one.sendall(b"POST /v1/audio/speech HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
                            b"Content-Length: %d\r\n\r\n%s" % (len(body), body))
                while server.metric("myxtts_queue_length") == 0:
                    time.sleep(0.01)
            server.until_idle()
        assert server.metric("myxtts_audio_seconds_total") == 0, "none was spoken to its end"
        assert server.stop()[0] == 0


def test_its_other_addresses(server):
    assert server.ask("GET", "/health")[::2] == (200, b'{"status":"ok"}\n')
    voices = json.loads(server.ask("GET", "/v1/voices")[2])
    assert voices["voices"] == ["speaker-1", "speaker-2", "speaker-3"] and sorted(voices["languages"]) == ["en", "fa"]
    assert voices["default_voice"] in voices["voices"] and voices["takes_references"] and voices["sample_rate"] == 22050
    for line in server.ask("GET", "/metrics")[2].decode().splitlines():
        assert re.fullmatch(r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]+"\})? [0-9.e+]+', line), line
    status, headers, page = server.ask("GET", "/")
    assert status == 200 and b"{{nonce}}" not in page
    policy = headers["Content-Security-Policy"]
    assert policy.startswith("default-src 'none'; script-src 'nonce-") and "unsafe" not in policy
    assert server.ask("GET", "/")[1]["Content-Security-Policy"] != policy, "a nonce is used once"
    assert not re.search(rb"""(src|href)=["']?(https?:)?//""", page), "nothing is loaded from elsewhere"
    head = server.ask("HEAD", "/health")
    assert head[0] == 200 and head[2] == b""


def test_what_is_asked_wrongly_is_answered_with_a_sentence(server, voice):
    assert "POST /v1/audio/speech" in error_of(server.ask("GET", "/v1/speech"), 404)
    assert server.ask("GET", "/v1/audio/speech")[1]["Allow"] == "POST"
    for method, path in (("GET", "/v1/audio/speech"), ("PUT", "/v1/audio/speech"), ("DELETE", "/"), ("POST", "/health")):
        error_of(server.ask(method, path, b"x"), 405)
    assert "application/json" in error_of(server.post("input=a", "application/x-www-form-urlencoded"), 415)
    error_of(server.post(b"--x\r\n\r\n--x--\r\n", "multipart/form-data; boundary=x"), 415)
    error_of(server.ask("POST", "/v1/audio/speech", b"\x1f\x8b", {"Content-Type": "application/json", "Content-Encoding": "gzip"}), 415)
    assert "not JSON" in error_of(server.post("river"), 400)
    assert "'input' is missing" in error_of(server.speak(voice="speaker-1"), 400)
    assert "it may be wav or pcm" in error_of(server.speak(input="a", response_format="mp3"), 400)
    assert "did you mean 'voice'" in error_of(server.speak(input="a", voise="b"), 400)
    assert "the nearest is 'speaker-" in error_of(server.speak(input="a", voice="speaker-l"), 400)
    assert "this voice speaks" in error_of(server.speak(input="a", language="de"), 400)
    assert "nothing to say" in error_of(server.speak(input="  "), 400)
    assert "€" in error_of(server.speak(input="€ is no letter of this voice"), 400)
    assert "€" in error_of(server.speak(input="€ is no letter of this voice", stream=True), 400)
    assert "at most 4096" in error_of(server.speak(input="a" * 4097), 400)
    error_of(server.speak(input="a" * 10_000_000), 413)
    assert "too large" in error_of(server.post(b"x" * (9 << 20) + b"y"), 413)
    for clip, must_say in ((b"no sound at all", "cannot be decoded"), (clip_of(voice)[:60], "the clip"), (clip_of(voice, 0.001), "too short"),
                           (clip_of(voice, 31), "longer than 30 s")):
        assert must_say in error_of(server.speak(input="a", reference=base64.b64encode(clip).decode()), 400)


def test_more_than_it_can_do_is_refused_at_once(voice):
    with Server(voice, "--queue", 2) as server, concurrent.futures.ThreadPoolExecutor(2) as pool:
        busy = [pool.submit(server.speak, input=SOME, speed=0.25) for _ in range(2)]
        while server.metric("myxtts_queue_length") < 2:
            time.sleep(0.01)
        answer = server.speak(input="a")
        assert "try again" in error_of(answer, 429) and int(answer[1]["Retry-After"]) >= 1
        assert server.ask("GET", "/health")[0] == 200
        assert [each.result()[0] for each in busy] == [200, 200]
        assert server.speak(input="a")[0] == 200


@pytest.mark.parametrize("signal_number", [signal.SIGTERM, signal.SIGINT])
def test_it_stops_when_it_has_finished_what_was_begun(voice, signal_number):
    with Server(voice) as server, concurrent.futures.ThreadPoolExecutor(2) as pool:
        whole = pool.submit(server.speak, input=SOME, speed=0.25)
        streamed = pool.submit(server.speak, input=SOME, speed=0.25, stream=True)
        idle = server.socket()  # says nothing, and is not waited for
        while server.metric("myxtts_queue_length") < 2:
            time.sleep(0.01)
        server.process.send_signal(signal_number)
        while True:
            try:
                with socket.create_connection((server.host, server.port), timeout=HANG_S):
                    time.sleep(0.01)
            except ConnectionRefusedError:
                break
        assert whole.result()[0] == streamed.result()[0] == 200 and whole.result()[2][44:] == streamed.result()[2][44:]
        out, err = server.process.communicate(timeout=HANG_S)
        assert (server.process.returncode, out, err) == (0, "stopped\n", "")
        idle.close()


def test_it_starts_or_says_why_not(myxtts, voice, server, tmp_path):
    taken = myxtts("serve", "--checkpoint", voice, "--port", server.port, status=1)
    assert f"port {server.port} cannot be had" in taken.stderr and "give another --port" in taken.stderr
    assert "give --checkpoint" in myxtts("serve", status=2).stderr
    assert "--port is 70000" in myxtts("serve", "--checkpoint", voice, "--port", 70000, status=2).stderr
    assert "--queue is 0" in myxtts("serve", "--checkpoint", voice, "--queue", 0, status=2).stderr
    assert "192.0.2.1" in myxtts("serve", "--checkpoint", voice, "--host", "192.0.2.1", "--port", 0, status=1).stderr
    assert "nowhere" in myxtts("serve", "--checkpoint", tmp_path / "nowhere", status=2).stderr


def own_address():
    """Of this machine on its network, if it has one. Nothing is sent."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        with contextlib.suppress(OSError):
            probe.connect(("192.0.2.1", 9))
            return probe.getsockname()[0]
    return None


def test_nobody_else_reaches_it_unless_it_is_told_so(voice, server):
    others = ["127.0.0.2"] + ([own_address()] if own_address() not in (None, "127.0.0.1") else [])
    for address in others:
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection((address, server.port), timeout=HANG_S)
    with Server(voice, "--host", "0.0.0.0") as everywhere:
        for address in others:
            everywhere.host = address
            assert everywhere.ask("GET", "/health")[0] == 200
        assert everywhere.stop()[2] == "warning: --host 0.0.0.0: anyone who can reach this machine can use the server\n"


def raw(server, data):
    """What comes back for bytes that need not be HTTP."""
    with server.socket() as one:
        with contextlib.suppress(OSError):
            one.sendall(data)
            one.shutdown(socket.SHUT_WR)
        answer = b""
        with contextlib.suppress(ConnectionError):
            while part := one.recv(65536):
                answer += part
        return answer


def hostile_bodies():
    yield from (b"", b"{", b"}", b"null", b"[]", b"\0", b"\xff\xfe", b"{" * 100_000, b"[" * 100_000, b'{"a":' * 10_000, b'"' * 1000)
    for text in ('{"input": 1}', '{"input": "a", "seed": 1e400}', '{"input": "a", "speed": -0}', '{"input": "\\ud800"}', '{"input":"a"}{"input":"b"}'):
        yield text.encode()
    for code in [*range(0, 9), 11, 12, *range(14, 32), 127]:
        yield b'{"input": "a%cb"}' % code if code != 127 else b'{"input": "a\x7fb"}'
        yield json.dumps({"input": f"a{chr(code)}b"}).encode()
    for size in range(1, 60):
        yield json.dumps({"input": "a", "reference": base64.b64encode(b"RIFF\xff\xff\xff\xffWAVEfmt " + bytes(range(256)) * 2)[:size * 4].decode()}).encode()
    for name in ("fLaC", "OggS", "ID3", "RF64", "BW64", "\xff\xfb\x90"):
        yield json.dumps({"input": "a", "reference": base64.b64encode(name.encode("latin-1") + b"\x00\xff" * 500).decode()}).encode()
    for field in ("input", "voice", "language", "model", "response_format", "reference", "x"):
        for value in ("a" * 100_000, {"b": {}}, [[]], None, -1, True, "../../etc/passwd", "x.speaker", "%s%n", "\u202e", "'; --"):
            if field != "input" or not isinstance(value, str) or len(value) > 9999:
                yield json.dumps({"input": "a", field: value}).encode()


def test_hostile_requests_get_their_answers(server):
    def is_refused(body):
        got = server.post(body)
        assert got[0] in (400, 413), (got, body[:100])
        error_of(got, got[0])

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        assert len(list(pool.map(is_refused, hostile_bodies()))) > 200
    assert server.speak(input="a")[0] == 200


def test_hostile_http_gets_its_answers(server):
    here = b"Host: localhost\r\n"
    post = b"POST /v1/audio/speech HTTP/1.1\r\n" + here + b"Content-Type: application/json\r\n"
    for data, statuses in ((b"\r\n\r\n", {400}), (b"nonsense\r\n\r\n", {400}), (b"\x16\x03\x01\x02\x00\x01\r\n\r\n", {400}), (b"GET\r\n\r\n", {400}),
                           (b"GET / HTTP/9.9\r\n\r\n", {400}), (b"BREW /health HTTP/1.1\r\n" + here + b"\r\n", {400, 405}),
                           (b"GET /" + b"a" * 9000 + b" HTTP/1.1\r\n\r\n", {414}),
                           (b"GET /health HTTP/1.1\r\n" + here + b"X: " + b"a" * 9000 + b"\r\n\r\n", {400}),
                           (b"GET /health HTTP/1.1\r\n" + here + b"Range: bytes=" + b"1-2," * 1500 + b"1-2\r\n\r\n", {200, 416}),
                           (b"GET /health HTTP/1.1\r\n" + here + b"Range: bytes=9-1\r\n\r\n", {200, 416}),
                           (b"GET /../../etc/passwd HTTP/1.1\r\n" + here + b"\r\n", {404}),
                           (b"GET /%00%ff%zz HTTP/1.1\r\n" + here + b"\r\n", {404}),
                           (post + b"Content-Length: 99999999999999999999\r\n\r\n{}", {413}), (post + b"Content-Length: -1\r\n\r\n{}", {413}),
                           (post + b"Content-Length: x\r\n\r\n{}", {400}), (post + b"\r\n{}", {400}),
                           (post + b"Content-Length: 1000\r\n\r\n{}", {400}),
                           (post + b"Transfer-Encoding: chunked\r\n\r\nzz\r\n", {400}),
                           (post + b"Transfer-Encoding: chunked\r\n\r\nffffffffffffffff\r\n{}", {400, 413}),
                           (post + b"Transfer-Encoding: chunked\r\n\r\n" + (b"100000\r\n" + b" " * (1 << 20) + b"\r\n") * 10, {413}),
                           (b"GET /health HTTP/1.1\r\n" + b"X: y\r\n" * 2_000_000, {413}),
                           (b"GET /health HTTP/1.1\r\nHost: evil.example\r\n\r\n", {403}), (b"GET / HTTP/1.1\r\n\r\n", {403})):
        answer = raw(server, data)
        assert answer[:9] == b"HTTP/1.1 " and int(answer[9:12]) in statuses, (data[:80], answer[:200])
        if int(answer[9:12]) != 200:
            assert b"application/json" in answer and json.loads(answer.split(b"\r\n\r\n", 1)[1])["error"]["message"]
    assert server.ask("GET", "/health")[0] == 200


def test_slow_senders_run_out_of_time_and_hold_nobody_up(server):
    """One sends a byte at a time, one stops in the middle, one says nothing at all."""
    def trickle(count):
        with server.socket() as one:
            data, answer = b"POST /v1/audio/speech HTTP/1.1\r\nX: " + b"y" * 4000, b""
            one.settimeout(0.2)
            for at in range(count, len(data)):
                with contextlib.suppress(TimeoutError, ConnectionError):
                    if count >= 0:
                        one.sendall(data[at:at + 1])
                    answer += one.recv(65536)
                    break
            return answer

    with concurrent.futures.ThreadPoolExecutor(8) as pool:
        slow = [pool.submit(trickle, count) for count in (0, 0, -1, -1)]
        assert server.speak(input="a")[0] == 200, "others are served meanwhile"
        for each in slow:
            head, body = each.result().split(b"\r\n\r\n", 1)
            assert head.startswith(b"HTTP/1.1 408") and json.loads(body)["error"]["code"] == "too_slow"


def test_more_connections_than_it_takes_are_refused(voice):
    with Server(voice, "--queue", 40) as server, contextlib.ExitStack() as open_ones:
        for _ in range(72):
            open_ones.enter_context(server.socket())
        status, _, body = server.ask("GET", "/health")
        assert status == 503 and json.loads(body)["error"]["code"] == "unavailable"
        open_ones.close()
        while server.ask("GET", "/health")[0] != 200:
            time.sleep(0.05)
        assert server.stop()[0] == 0


def test_many_are_heard_at_once_and_each_hears_its_own(server):
    texts = [f"river {'run ' * (i % 5)}day" for i in range(12)]
    alone = [server.speak(input=text, seed=i)[2] for i, text in enumerate(texts)]
    with concurrent.futures.ThreadPoolExecutor(len(texts)) as pool:
        together = list(pool.map(lambda i: server.speak(input=texts[i], seed=i)[2], range(len(texts))))
    assert together == alone


def test_a_client_that_nobody_here_wrote_is_served(server, tmp_path):
    openai = pytest.importorskip("openai")
    client = openai.OpenAI(base_url=f"http://127.0.0.1:{server.port}/v1", api_key="none", max_retries=0)
    speech = client.audio.speech.create(model="tts-1", voice="speaker-1", input="river", response_format="wav")
    assert speech.content == server.speak(input="river", voice="speaker-1")[2]
    with client.audio.speech.with_streaming_response.create(model="tts-1", voice="speaker-1", input="river", response_format="pcm",
                                                            extra_body={"stream": True}) as answer:
        answer.stream_to_file(tmp_path / "speech.pcm")
    assert (tmp_path / "speech.pcm").read_bytes() == speech.content[44:]
    with pytest.raises(openai.BadRequestError, match="wav or pcm"):
        client.audio.speech.create(model="tts-1", voice="speaker-1", input="river", response_format="mp3")
    # Without a format it sends WAV; as a stream it is the same sound.
    assert client.audio.speech.create(model="tts-1", voice="speaker-1", input="river").content == speech.content
    with client.audio.speech.with_streaming_response.create(model="tts-1", voice="speaker-1", input="river", response_format="pcm",
                                                            stream_format="audio") as answer:
        assert b"".join(answer.iter_bytes()) == speech.content[44:] and answer.headers["Transfer-Encoding"] == "chunked"
    # Nothing is taken and then ignored.
    for unknown, sentence in (({"stream_format": "sse"}, "it may be audio"), ({"instructions": "Be cheerful."}, "'instructions' is not a field")):
        with pytest.raises(openai.BadRequestError, match=sentence):
            client.audio.speech.create(model="tts-1", voice="speaker-1", input="river", **unknown)


@pytest.mark.skipif(CHROMIUM is None, reason="no Chromium here: the page is not looked at")
def test_the_page_speaks_in_both_languages_and_clones(server, tmp_path):
    with Browser(tmp_path) as browser:
        for language, direction, speak in (("en", "ltr", "Speak"), ("fa", "rtl", "بخوان")):
            for width in (390, 1100):
                browser.show(f"http://127.0.0.1:{server.port}/#{language}", width, 900, dark=width > 600)
                assert browser.run("document.documentElement.dir") == direction and browser.run("$('speak').textContent") == speak
                assert browser.run("document.documentElement.scrollWidth") <= width, "nothing sticks out"
                assert browser.run("getComputedStyle($('example')).direction") == "ltr"
                browser.picture(tmp_path / f"{language}-{width}.png")
        # Typed, clicked, heard by the page's own meter, and there to be kept.
        browser.run("$('text').value = 'river run by day'; $('language').value = 'en'; $('voice').value = 'speaker-3'; $('speak').click()")
        browser.until("!running && !$('heard').hidden")
        assert browser.run("Number(document.body.dataset.peak)") > 20
        kept = base64.b64decode(browser.run("base64Of(wavOf(sound.samples(), facts.sample_rate))"))
        assert kept == server.speak(input="river run by day", voice="speaker-3", language="en")[2]
        # Recorded by the browser's own test tone, and cloned once there is consent.
        browser.run("begun = 0; Recorder = MediaRecorder; MediaRecorder = function (stream) { ++begun; return new Recorder(stream); }")
        browser.run("$('record').click(); $('record').click()")
        browser.until("recorder && recorder.state === 'recording'")
        assert browser.run("begun") == 1, "a double click begins one recording"
        time.sleep(1.5)
        browser.run("$('record').click()")
        browser.until("clip")
        browser.run("$('speak').click()")
        assert "رضایت" in browser.run("$('problem').textContent")
        browser.run("$('consent').checked = true; $('heard').hidden = true; $('speak').click()")
        browser.until("!running && (!$('heard').hidden || $('problem').textContent)")
        assert browser.run("$('problem').textContent") == ""
        browser.run("$('remove').click(); $('text').value = '€'; $('speak').click()")
        browser.until("!running && $('problem').textContent")
        assert "€" in browser.run("$('problem').textContent")
        # A server that was busy when the page was opened is asked again.
        browser.run("real = fetch; fetch = () => Promise.resolve(Response.json({error: {message: 'busy'}}, {status: 503})); facts = null")
        browser.run("$('text').value = 'river'; $('speak').click()")
        browser.until("$('problem').textContent === 'busy'")
        browser.run("fetch = real; $('voice').replaceChildren(); $('language').replaceChildren(); $('heard').hidden = true; $('speak').click()")
        browser.until("!running && (!$('heard').hidden || $('problem').textContent)")
        assert browser.run("$('problem').textContent") == "" and browser.run("$('voice').options.length") == 3
        allowed = [entry for entry in browser.console if "400" not in json.dumps(entry)]
        assert allowed == [], "no word on the console but the refused text"
