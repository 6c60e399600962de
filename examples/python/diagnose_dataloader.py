"""Why does this DataLoader keep its step waiting? Any loader can be asked; this one reads WAV files in Python.

    python examples/python/diagnose_dataloader.py build/demo/corpus
"""
import argparse
import pathlib
import wave

import numpy as np
import torch

import myxtts


class Clips(torch.utils.data.Dataset):
    def __init__(self, corpus):
        self.files = sorted((pathlib.Path(corpus) / "wavs").glob("*.wav"))
        self.mel = myxtts.MelSpectrogram(preset="hifigan")

    def __len__(self):
        return len(self.files)

    def __getitem__(self, number):
        with wave.open(str(self.files[number])) as file:
            samples = np.frombuffer(file.readframes(file.getnframes()), np.int16)
        return self.mel(torch.from_numpy(samples.copy())).T


def pad(mels):
    return torch.nn.utils.rnn.pad_sequence(mels, batch_first=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--batches", type=int, default=20)
    parser.add_argument("--html", help="write the verdict as a page")
    options = parser.parse_args()
    loader = torch.utils.data.DataLoader(Clips(options.corpus), 16, True, num_workers=options.workers, collate_fn=pad)
    layer = torch.nn.Linear(80, 80)

    def step(mel):
        layer(mel).square().mean().backward()

    diagnosis = myxtts.diagnose(loader, step, batches=options.batches)
    if options.html:
        pathlib.Path(options.html).write_text(diagnosis.html, encoding="utf-8")


if __name__ == "__main__":
    main()
