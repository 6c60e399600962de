"""Vocabularies and voices from strangers: one sentence, in little time and memory."""
import json
import struct

import pytest

DEEP = "[" * 200_000 + "]" * 200_000


@pytest.mark.parametrize("text", [f'{{"version":1,"symbols":{DEEP}}}', f'{{"version":{DEEP},"symbols":[]}}'], ids=["symbols", "version"])
def test_a_deeply_nested_vocabulary_is_one_sentence(myxtts, corpus, tmp_path, text):
    path = tmp_path / "vocabulary.json"
    path.write_text(text)
    done = myxtts("prepare", corpus, "--vocabulary", path, status=2)
    assert "is not a vocabulary" in done.stderr and done.stderr.count("\n") == 1


@pytest.mark.parametrize("key, value", [
    ("vocabulary", f'{{"version":1,"symbols":{DEEP}}}'),
    ("corpus_mel", f'{{"mean":{DEEP},"deviation":1}}'),
    ("speakers", DEEP),
    ("config", "#" * (2 << 20)),
    ("config", "mel_presets:\n  p: &p {" + ",".join(f"k{i}: 1" for i in range(5000)) + "}\n" + "".join(f"  p{i}: *p\n" for i in range(50))),
], ids=["vocabulary", "corpus_mel", "speakers", "long config", "aliases"])
def test_a_voice_with_hostile_metadata_is_one_sentence(myxtts, voice, tmp_path, key, value):
    content = next(voice.glob("step-*.safetensors")).read_bytes()
    (size,) = struct.unpack("<Q", content[:8])
    header = json.loads(content[8:8 + size])
    metadata = header["__metadata__"]
    del metadata["checksum"], metadata["header_checksum"]
    metadata[key] = value
    text = json.dumps(header).encode()
    path = tmp_path / "voice.safetensors"
    path.write_bytes(struct.pack("<Q", len(text)) + text + content[8 + size:])
    done = myxtts("speakers", path, status=2)
    assert done.stderr.startswith("error: [") and done.stderr.count("\n") == 1
