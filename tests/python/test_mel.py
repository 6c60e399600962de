import ctypes
import pickle

import numpy as np
import pytest
from conftest import mel_of_program, noise

import myxtts

torch = pytest.importorskip("torch")


def test_presets_are_those_of_the_program(program):
    listed = [line.split()[0] for line in program("mel", "--list").stdout.splitlines()]
    assert list(myxtts.presets()) == listed and myxtts.presets()["vocos"]["sample_rate"] == "24000"


@pytest.mark.parametrize("preset", list(myxtts.presets()))
def test_a_mel_is_that_of_the_program_to_the_bit(program, tmp_path, preset):
    samples = noise(20000)
    for rate in (int(myxtts.presets()[preset]["sample_rate"]), 48000):
        expected = mel_of_program(program, tmp_path, samples, rate, preset)
        for given in (samples, samples / np.float32(32768), samples / 32768.0):
            made = myxtts.mel(given, sample_rate=rate, preset=preset)
            assert isinstance(made, np.ndarray) and made.tobytes() == expected.tobytes(), (rate, given.dtype)
            assert made.flags.writeable


def test_a_tensor_gives_a_tensor(program, tmp_path):
    samples = noise(20000)
    expected = mel_of_program(program, tmp_path, samples, 22050, "hifigan")
    made = myxtts.mel((torch.tensor(samples) / 32768).requires_grad_())
    assert isinstance(made, torch.Tensor) and made.numpy().tobytes() == expected.tobytes()


def test_clips_of_a_batch_and_views_are_as_alone():
    samples = noise(4 * 9000).reshape(4, 9000) / np.float32(32768)
    alone = np.stack([myxtts.mel(row) for row in samples])
    assert (myxtts.mel(samples) == alone).all()
    assert (myxtts.mel(np.asfortranarray(samples)) == alone).all()
    assert (myxtts.mel(samples[::2]) == alone[::2]).all()
    assert (myxtts.mel(np.repeat(samples, 2, axis=1)[:, ::2]) == alone).all()
    frozen = samples.copy()
    frozen.flags.writeable = False
    assert (myxtts.mel(frozen) == alone).all()


def test_what_is_no_samples_is_refused(tmp_path):
    with pytest.raises(myxtts.Error, match="did you mean hifigan"):
        myxtts.mel(np.zeros(1000, np.float32), preset="hifigam")
    for given, complaint in [
        (np.zeros((2, 2, 1000), np.float32), "3 dimensions"),
        (np.zeros(1000, np.int64), "of this type"),
        (np.zeros(0, np.float32), "no samples"),
        ([0.0, 1.0], "a list is not an array"),
    ]:
        with pytest.raises(myxtts.Error, match=complaint):
            myxtts.mel(given)
    with pytest.raises(myxtts.Error, match="sample_rate is 0"):
        myxtts.mel(np.zeros(1000, np.float32), sample_rate=0)


def test_a_preset_of_ones_own(tmp_path):
    file = tmp_path / "mine.yaml"
    file.write_text("mel_presets:\n  mine: {base: tacotron2, n_mels: 40, hop_length: 200}\n")
    assert myxtts.mel(noise(2000), preset="mine", config=file).shape == (11, 40)


@pytest.mark.parametrize(
    "keywords",
    [
        {},
        {"sample_rate": 22050, "n_fft": 1024, "hop_length": 256, "n_mels": 80, "power": 1.0},
        {"sample_rate": 22050, "n_fft": 1024, "f_min": 40.0, "f_max": 8000.0, "norm": "slaney", "mel_scale": "slaney"},
        {"n_fft": 512, "win_length": 400, "pad_mode": "constant"},
    ],
)
def test_the_transform_is_what_torchaudio_gives(keywords):
    """torchaudio's definition, by librosa: HTK scale, no norm, power 2, the hop half of the window."""
    librosa = pytest.importorskip("librosa")
    waveform = torch.tensor(noise(2 * 12000).reshape(2, 12000) / np.float32(32768))
    made = myxtts.MelSpectrogram(**keywords)(waveform)
    n_fft = keywords.get("n_fft", 400)
    window = keywords.get("win_length", n_fft)
    expected = librosa.feature.melspectrogram(
        y=waveform.numpy(),
        sr=keywords.get("sample_rate", 16000),
        n_fft=n_fft,
        win_length=window,
        hop_length=keywords.get("hop_length", window // 2),
        pad_mode=keywords.get("pad_mode", "reflect"),
        power=keywords.get("power", 2.0),
        n_mels=keywords.get("n_mels", 128),
        fmin=keywords.get("f_min", 0.0),
        fmax=keywords.get("f_max"),
        htk=keywords.get("mel_scale", "htk") == "htk",
        norm=keywords.get("norm"),
    )
    assert isinstance(made, torch.Tensor) and made.shape == expected.shape
    assert np.abs(made.numpy() - expected).max() <= 1e-5 * np.abs(expected).max()


def test_the_transform_takes_any_leading_dimensions_and_travels():
    transform = myxtts.MelSpectrogram(preset="hifigan")
    waveform = noise(6 * 3000).reshape(2, 3, 3000)
    made = transform(waveform)
    assert made.shape == (2, 3, 80, 11) and (made[1, 2] == myxtts.mel(waveform[1, 2]).T).all()
    assert (pickle.loads(pickle.dumps(transform))(waveform) == made).all()
    assert (transform.sample_rate, transform.n_mels) == (22050, 80)
    assert (transform.n_fft, transform.win_length, transform.hop_length) == (1024, 1024, 256)
    with pytest.raises(myxtts.Error, match="mel_norm"):
        myxtts.MelSpectrogram(norm="htk")


def test_keywords_of_torchaudio_are_taken_at_their_defaults_and_refused_otherwise():
    defaults = {"center": True, "normalized": False, "pad": 0, "window_fn": torch.hann_window, "wkwargs": None, "onesided": None}
    waveform = noise(5000)
    made = myxtts.MelSpectrogram(16000, **defaults, pad_mode="reflect")(waveform)
    assert (made == myxtts.MelSpectrogram()(waveform)).all()
    others = {"center": False, "normalized": True, "pad": 1, "window_fn": torch.hamming_window, "wkwargs": {"periodic": False},
              "onesided": False, "power": 3, "pad_mode": "edge"}
    for key, value in others.items():
        with pytest.raises(ValueError, match=f"{key} is .*; it may"):
            myxtts.MelSpectrogram(**{key: value})


def test_memory_of_a_foreign_device_is_refused():
    class OnRocm:
        def __dlpack_device__(self):
            return 10, 0

        def __dlpack__(self, **_):
            capsule = np.zeros(2000, np.float32).__dlpack__()
            ctypes.pythonapi.PyCapsule_GetPointer.restype = ctypes.c_void_p
            tensor = ctypes.pythonapi.PyCapsule_GetPointer(ctypes.py_object(capsule), b"dltensor")
            ctypes.c_int32.from_address(tensor + 8).value = 10  # DLTensor: data, device
            return capsule

    with pytest.raises(myxtts.Error, match="a device of another kind"):
        myxtts.mel(OnRocm())


def test_in_a_data_set_it_works_in_worker_processes():
    class Clips(torch.utils.data.Dataset):
        transform = myxtts.MelSpectrogram()

        def __len__(self):
            return 6

        def __getitem__(self, number):
            return self.transform(torch.tensor(noise(3000, number)))

    mels = torch.cat(list(torch.utils.data.DataLoader(Clips(), 2, num_workers=2)))
    assert (mels == torch.stack([Clips()[i] for i in range(6)])).all()
