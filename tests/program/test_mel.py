import math

import numpy as np
import PIL.Image
import pytest
import soundfile
from conftest import at_once
from mel_reference import PRESETS, reference


def signals(rate, corpus):
    """Name, samples as 16-bit integers."""
    rng = np.random.default_rng(1)
    speech, own_rate = soundfile.read(corpus / "wavs" / "demo-00003.wav", dtype="int16")
    time = np.arange(2 * rate) / rate
    chirp = 12000 * np.sin(2 * np.pi * (80 * time + 0.5 * (0.45 * rate - 80) / 2 * time**2))
    noise = rng.normal(0, 3000, rate)
    burst = np.concatenate([np.zeros(rate // 2), noise[: rate // 2], np.zeros(rate // 2), rng.normal(0, 2, rate // 2)])
    yield "speech", speech
    yield "chirp", chirp
    yield "noise", noise
    yield "burst", burst
    yield "silence", np.zeros(rate // 2)
    yield "one sample", np.array([9000])
    yield "one hop", noise[:256]
    yield "shorter than the reflection", noise[:300]
    yield "two samples", np.array([1000, -1000])


@pytest.mark.parametrize("preset", PRESETS)
def test_a_preset_is_what_its_field_expects(myxtts, corpus, tmp_path, preset):
    rate = PRESETS[preset].rate

    def check(signal):
        name, samples = signal
        samples = np.asarray(samples).astype(np.int16)
        soundfile.write(tmp_path / f"{name}.wav", samples, rate)
        myxtts("mel", tmp_path / f"{name}.wav", tmp_path / f"{name}.npy", "--preset", preset)
        got, expected = np.load(tmp_path / f"{name}.npy"), reference(preset, samples / 32768.0)
        assert got.dtype == np.float32 and got.shape == expected.shape, name
        if expected.size == 0:
            return
        limit = 1e-3 if PRESETS[preset].log != "none" or preset == "tf_signal" else 1e-5 * np.abs(expected).max()
        assert np.abs(got - expected).max() <= limit, name
        # The range of a whole clip hangs on its quietest value, so its error is everywhere.
        assert np.abs(got - expected).mean() <= limit / (10 if preset != "tf_signal" else 3), name

    at_once(check, signals(rate, corpus))


def write_wav_variants(folder, samples):
    """One clip in every encoding; returns path -> how exact it is."""
    kinds = {"PCM_U8": 1 / 50, "PCM_16": 1e-4, "PCM_24": 1e-6, "PCM_32": 1e-6, "FLOAT": 1e-6, "DOUBLE": 1e-6,
             "ALAW": 1 / 30, "ULAW": 1 / 30}
    made = {}
    for kind, exact in kinds.items():
        for container in ("WAV", "WAVEX", "RF64"):
            path = folder / f"{kind}.{container}.wav"
            soundfile.write(path, samples, 22050, subtype=kind, format=container)
            made[path] = exact
    for path, kind, exact in (("a.flac", None, 1e-4), ("a.ogg", None, 0.2), ("a.mp3", None, 0.2)):
        soundfile.write(folder / path, samples, 22050, subtype=kind)
        made[folder / path] = exact
    return made


def test_every_encoding_gives_the_same_mel(myxtts, corpus, tmp_path):
    samples, rate = soundfile.read(corpus / "wavs" / "demo-00005.wav")
    expected = reference("hifigan", samples)
    loud = expected > expected.max() - 4

    def check(variant):
        path, exact = variant
        myxtts("mel", path, f"{path}.npy")
        got = np.load(f"{path}.npy")[: len(expected)]
        assert abs(len(got) - len(expected)) <= (1 if path.suffix != ".mp3" else 10), path.name
        both = loud[: len(got)]
        assert np.abs(got - expected[: len(got)])[both].mean() < exact, path.name

    at_once(check, write_wav_variants(tmp_path, samples).items())


def test_opus_decodes(myxtts, corpus, tmp_path):
    samples, _ = soundfile.read(corpus / "wavs" / "demo-00005.wav")
    soundfile.write(tmp_path / "a.opus", samples, 24000, format="OGG", subtype="OPUS")
    assert "resampled from" in myxtts("mel", tmp_path / "a.opus", tmp_path / "out.npy").stdout
    assert np.load(tmp_path / "out.npy").max() > 0


def test_channels_are_averaged(myxtts, corpus, tmp_path):
    samples, rate = soundfile.read(corpus / "wavs" / "demo-00006.wav")
    many = np.stack([samples * share for share in (0.2, 0.4, 0.6, 0.8, 1.0)], axis=1)
    soundfile.write(tmp_path / "many.wav", many, rate, subtype="FLOAT")
    soundfile.write(tmp_path / "mono.wav", many.mean(axis=1), rate, subtype="FLOAT")
    for name in ("many", "mono"):
        myxtts("mel", tmp_path / f"{name}.wav", tmp_path / f"{name}.npy")
    assert np.abs(np.load(tmp_path / "many.npy") - np.load(tmp_path / "mono.npy")).max() < 1e-3


def torch_resample(x, orig, new):
    """torchaudio's sinc_interp_hann with its defaults, written out; the taps that its window makes zero are left out."""
    cutoff = 0.99 * min(orig, new) / orig
    width = math.ceil(6 / cutoff)
    place = np.arange(math.ceil(new * len(x) / orig)) * orig / new
    near = np.floor(place).astype(int)[:, None] + np.arange(-width, width + 1)
    t = ((near - place[:, None]) * cutoff).clip(-6, 6)
    kernel = np.sinc(t) * np.cos(t * np.pi / 12) ** 2 * cutoff
    return (kernel * np.pad(x, width)[near + width]).sum(axis=1)


@pytest.mark.parametrize("rate", [8000, 16000, 32000, 44100, 48000, 22051])
def test_any_rate_is_resampled_as_torchaudio_does(myxtts, corpus, tmp_path, rate):
    samples, _ = soundfile.read(corpus / "wavs" / "demo-00002.wav")
    samples = samples[:20000]
    soundfile.write(tmp_path / "in.wav", samples, rate, subtype="FLOAT")
    myxtts("mel", tmp_path / "in.wav", tmp_path / "out.npy")
    got, expected = np.load(tmp_path / "out.npy"), reference("hifigan", torch_resample(samples, rate, 22050))
    assert got.shape == expected.shape
    loud = expected > expected.max() - 9
    assert np.abs(got - expected)[loud].max() < 2e-3


def test_a_preset_of_ones_own(myxtts, corpus, tmp_path):
    config = tmp_path / "mine.yaml"
    config.write_text("mel_presets:\n  mine: {base: tacotron2, n_mels: 40, hop_length: 200}\ndata:\n  mel_preset: mine\n")
    myxtts("mel", corpus / "wavs" / "demo-00001.wav", tmp_path / "out.npy", "--config", config)
    samples, _ = soundfile.read(corpus / "wavs" / "demo-00001.wav")
    assert np.load(tmp_path / "out.npy").shape == (1 + len(samples) // 200, 40)
    config.write_text("mel_presets:\n  mine: {n_melz: 40}\ndata:\n  mel_preset: mine\n")
    assert "did you mean n_mels" in myxtts("mel", corpus / "wavs" / "demo-00001.wav", "x.npy", "--config", config, status=2).stderr
    listed = myxtts("mel", "--list").stdout
    for name in PRESETS:
        assert name in listed


def difference(mel, samples):
    """How far the sound's log-mel is from the one it was made from."""
    return np.abs(reference("hifigan", samples)[: len(mel)] - mel).mean()


def librosa_sound(mel, rate):
    import librosa

    magnitude = librosa.feature.inverse.mel_to_stft(np.exp(mel.T), sr=rate, n_fft=1024, power=1.0, fmin=0, fmax=8000)
    sound = librosa.griffinlim(magnitude, n_iter=60, hop_length=256, n_fft=1024, center=False, momentum=0.99, random_state=1)
    padding = (1024 - 256) // 2
    sound = sound[padding : padding + 256 * len(mel)]
    return np.clip(np.round(sound * 32768), -32768, 32767) / 32768  # as it would be in a file


@pytest.mark.parametrize("clip", ["demo-00003", "demo-00005"])
def test_resynth_is_as_near_to_the_mel_as_librosas(myxtts, corpus, tmp_path, clip):
    done = myxtts("mel", corpus / "wavs" / f"{clip}.wav", tmp_path / "out.npy", "--resynth", tmp_path / "out.wav")
    mel = np.load(tmp_path / "out.npy")
    sound, rate = soundfile.read(tmp_path / "out.wav")
    assert rate == 22050 and len(sound) == 256 * len(mel) and "by Griffin-Lim" in done.stdout
    own, peers = difference(mel, sound), difference(mel, librosa_sound(mel, rate))
    assert own < 1.1 * peers, f"ours {own:.3f}, librosa's {peers:.3f}"
    original, _ = soundfile.read(corpus / "wavs" / f"{clip}.wav")
    assert 0.8 < np.std(sound) / np.std(original) < 1.25


def test_resynth_is_at_the_presets_rate_and_the_same_each_time(myxtts, corpus, tmp_path):
    clip = corpus / "wavs" / "demo-00001.wav"
    for name in ("a", "b"):
        myxtts("mel", clip, tmp_path / f"{name}.npy", "--preset", "vocos", "--resynth", tmp_path / f"{name}.wav")
    assert soundfile.info(tmp_path / "a.wav").samplerate == 24000
    assert (tmp_path / "a.wav").read_bytes() == (tmp_path / "b.wav").read_bytes()
    myxtts("mel", clip, tmp_path / "without.npy", "--preset", "vocos")
    assert (tmp_path / "a.npy").read_bytes() == (tmp_path / "without.npy").read_bytes()


def test_a_mel_as_a_picture_has_time_across_and_low_bands_at_the_bottom(myxtts, corpus, tmp_path):
    myxtts("mel", corpus / "wavs" / "demo-00001.wav", tmp_path / "a.npy", "--png", tmp_path / "a.png")
    mel = np.load(tmp_path / "a.npy")
    grey = np.asarray(PIL.Image.open(tmp_path / "a.png").convert("L")).astype(float)[::2, ::2]
    assert grey.shape == mel.T.shape
    assert np.corrcoef(grey.ravel(), mel.T[::-1].ravel())[0, 1] > 0.95
    assert "no --png" in myxtts("mel", tmp_path / "a.npy", "--resynth", tmp_path / "a.wav", "--png", tmp_path / "b.png", status=2).stderr


def test_a_mel_from_a_file_becomes_the_same_sound(myxtts, corpus, tmp_path):
    clip, mel = corpus / "wavs" / "demo-00003.wav", tmp_path / "mel.npy"
    myxtts("mel", clip, mel, "--resynth", tmp_path / "at_once.wav")
    myxtts("mel", mel, "--resynth", tmp_path / "later.wav")
    assert (tmp_path / "later.wav").read_bytes() == (tmp_path / "at_once.wav").read_bytes()
    assert "is a mel already" in myxtts("mel", mel, tmp_path / "other.npy", status=2).stderr
    assert "has 80 bands, but vocos has 100" in myxtts("mel", mel, "--preset", "vocos", "--resynth", tmp_path / "x.wav", status=2).stderr
    for name, content in {"double": np.load(mel).astype(np.float64), "column_major": np.asfortranarray(np.load(mel)), "cube": np.load(mel)[None]}.items():
        np.save(tmp_path / f"{name}.npy", content)
        assert "is not a float32 matrix" in myxtts("mel", tmp_path / f"{name}.npy", "--resynth", tmp_path / "x.wav", status=2).stderr
    (tmp_path / "cut.npy").write_bytes(mel.read_bytes()[:-1])
    assert "is not a float32 matrix" in myxtts("mel", tmp_path / "cut.npy", "--resynth", tmp_path / "x.wav", status=2).stderr
    assert not (tmp_path / "x.wav").exists()


def test_resynth_refuses_what_cannot_be_heard_and_writes_nothing(myxtts, corpus, tmp_path):
    clip, out, wav = corpus / "wavs" / "demo-00001.wav", tmp_path / "out.npy", tmp_path / "out.wav"
    assert "tf_signal spreads every clip" in myxtts("mel", clip, out, "--preset", "tf_signal", "--resynth", wav, status=2).stderr
    assert "the same file" in myxtts("mel", clip, out, "--resynth", out, status=2).stderr
    soundfile.write(tmp_path / "short.wav", np.zeros(200), 22050)
    assert "too short for --resynth" in myxtts("mel", tmp_path / "short.wav", out, "--resynth", wav, status=1).stderr
    assert not out.exists() and not wav.exists()
    assert "--resynth" in myxtts("mel", "--help").stdout
