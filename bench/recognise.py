#!/usr/bin/env python3
"""Whether a recogniser understands what a voice says: character and word error rates of the WAVs that
bench/voice_quality.py kept, added to its result file. Needs `pip install pocketsphinx soundfile scipy`.

    bench/recognise.py WAVS RESULT.json

Pocketsphinx knows the words of the texts and nothing of their order. It was made for people: on espeak-ng's own clips it
is wrong more often than not, so only the kinds beside each other mean something.
"""
import json
import pathlib
import re
import sys

import numpy as np
import soundfile
from pocketsphinx import Decoder
from scipy.signal import resample_poly


def distance(one, other):
    row = list(range(len(other) + 1))
    for i, x in enumerate(one, 1):
        new = [i]
        for j, y in enumerate(other, 1):
            new.append(min(row[j] + 1, new[-1] + 1, row[j - 1] + (x != y)))
        row = new
    return row[-1]


def words_of(text):
    return re.findall(r"[a-z']+", text.lower())


def main():
    wavs, result_file = map(pathlib.Path, sys.argv[1:3])
    result = json.loads(result_file.read_text(encoding="utf-8"))
    clips = result["clips"]
    decoder = Decoder(samprate=16000, loglevel="FATAL")
    known = sorted(word for word in {word for clip in clips for word in words_of(clip["text"])} if decoder.lookup_word(word))
    decoder.add_jsgf_string("words", f"#JSGF V1.0; grammar w; public <s> = ( {' | '.join(known)} )+ ;")
    decoder.activate_search("words")

    def hear(path):
        samples, rate = soundfile.read(path)
        samples = resample_poly(samples, 16000, rate)
        samples = np.concatenate([np.zeros(4000), samples, np.zeros(4000)]) * 0.6 / max(1e-6, np.abs(samples).max())
        decoder.start_utt()
        decoder.process_raw((samples * 32767).astype("<i2").tobytes(), full_utt=True)
        decoder.end_utt()
        return re.sub(r"\(\d\)", "", decoder.hyp().hypstr) if decoder.hyp() else ""

    result["recogniser"] = {"name": "pocketsphinx, en-us, any order of the texts' words"}
    for kind in ("true", "ceiling", "voice", "floor"):
        pairs = [(hear(wavs / f"{clip['id']}-{kind}.wav"), " ".join(words_of(clip["text"]))) for clip in clips]
        rates = {
            "character_error_rate": sum(distance(*pair) for pair in pairs) / sum(len(text) for _, text in pairs),
            "word_error_rate": sum(distance(heard.split(), text.split()) for heard, text in pairs) / sum(len(text.split()) for _, text in pairs),
        }
        result["recogniser"][kind] = rates
        print(f"{kind:8} characters {rates['character_error_rate']:.2f}  words {rates['word_error_rate']:.2f}")
    result_file.write_text(json.dumps(result, indent=2, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
