"""What a Matcha-TTS model is given by its data module, from the Loader: the function below takes that module's place.

    python examples/python/matcha_dataset.py build/demo/corpus
"""
import argparse

import myxtts
from myxtts.torch import tensors

ARRAYS = ("tokens", "mel", "text_lengths", "mel_lengths", "speaker")


def matcha_batches(loader):
    for batch in loader:
        arrays = tensors(batch)
        yield {
            "x": arrays["tokens"].long(),
            "x_lengths": arrays["text_lengths"].long(),
            "y": arrays["mel"].transpose(1, 2),  # [clips, mels, frames], normalized as Matcha-TTS does
            "y_lengths": arrays["mel_lengths"].long(),
            "spks": arrays["speaker"].long(),
        }


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    with myxtts.Loader(options.corpus, batch_size=options.batch_size, preset="matcha", arrays=ARRAYS) as loader:
        print(f"{loader.vocabulary_size} tokens, {len(loader.speakers)} speakers, {len(loader)} batches")
        for batch in matcha_batches(loader):
            print(", ".join(f"{name} {list(tensor.shape)}" for name, tensor in batch.items()))


if __name__ == "__main__":
    main()
