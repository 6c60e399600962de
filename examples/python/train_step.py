"""A training loop of one's own, fed by myxtts.Loader. On a GPU each static shape's step is captured once and replayed.

    python examples/python/train_step.py build/demo/corpus --device cuda:0
"""
import argparse

import torch

import myxtts
from myxtts.torch import tensors


class Denoiser(torch.nn.Sequential):
    """Finds the mel behind noise: a stand-in for your model."""

    def __init__(self, mels, width=128):
        conv, between = torch.nn.Conv1d, torch.nn.GELU()
        wide = [conv(width, width, 5, padding=2) for _ in range(3)]
        layers = [conv(mels, width, 5, padding=2), *wide, conv(width, mels, 1)]
        super().__init__(*[part for layer in layers for part in (layer, between)][:-1])

    def loss(self, arrays):
        mel = arrays["mel"].transpose(1, 2)
        valid = torch.arange(mel.shape[2], device=mel.device) < arrays["mel_lengths"][:, None]
        error = self(mel + torch.randn_like(mel)) - mel
        return (error.square() * valid[:, None]).sum() / (valid.sum() * mel.shape[1])


class CapturedStep:
    """One CUDA graph per static shape; without a GPU the step runs as it is."""

    def __init__(self, model):
        self.model, self.graphs = model, {}
        on_gpu = next(model.parameters()).is_cuda
        self.optimizer = torch.optim.AdamW(model.parameters(), 1e-3, capturable=on_gpu)

    def step(self, arrays):
        self.optimizer.zero_grad()
        loss = self.model.loss(arrays)
        loss.backward()
        self.optimizer.step()
        return loss.detach()

    def __call__(self, batch):
        arrays = tensors(batch)  # no copy
        if not arrays["mel"].is_cuda:
            return self.step(arrays)
        if batch.shape not in self.graphs:
            self.graphs[batch.shape] = self.capture({name: array.clone() for name, array in arrays.items()})
        graph, inputs, loss = self.graphs[batch.shape]
        for name, array in arrays.items():
            inputs[name].copy_(array)
        graph.replay()
        return loss

    def capture(self, inputs):
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries create what they keep outside of the capture
            self.step(inputs)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, capture_error_mode="thread_local"):  # other threads may work meanwhile
            loss = self.step(inputs)
        return graph, inputs, loss


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--device", default="cuda:0" if myxtts.device_count() else "cpu")
    parser.add_argument("--epochs", type=int, default=2)
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    with myxtts.Loader(options.corpus, batch_size=options.batch_size, device=options.device) as loader:
        step = CapturedStep(Denoiser(mels=80).to(options.device))
        for _ in range(options.epochs):
            losses = [step(batch).clone() for batch in loader]
            print(f"epoch {loader.epoch}: loss {torch.stack(losses).mean().item():.3f}, {len(step.graphs)} captures, "
                  f"waited {loader.stats()['consumer_waits_s']:.2f} s so far")


if __name__ == "__main__":
    main()
