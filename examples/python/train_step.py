"""A training loop of one's own, fed by myxtts.Loader. On a GPU each static shape's step is captured once and replayed.

    python examples/python/train_step.py build/demo/corpus --device cuda:0
"""
import argparse

import torch

import myxtts
from myxtts.torch import tensors


class Denoiser(torch.nn.Module):
    """Finds the mel behind noise: a stand-in for your model."""

    def __init__(self, mels, width=128):
        super().__init__()
        wide = [torch.nn.Conv1d(width, width, 5, padding=2) for _ in range(3)]
        layers = [torch.nn.Conv1d(mels, width, 5, padding=2), *wide, torch.nn.Conv1d(width, mels, 1)]
        self.layers = torch.nn.Sequential(*[part for layer in layers for part in (layer, torch.nn.GELU())][:-1])

    def loss(self, arrays):
        mel = arrays["mel"].transpose(1, 2)
        valid = torch.arange(mel.shape[2], device=mel.device) < arrays["mel_lengths"][:, None]
        error = self.layers(mel + torch.randn_like(mel)) - mel
        return (error.square() * valid[:, None]).sum() / (valid.sum() * mel.shape[1])


class CapturedStep:
    """One CUDA graph per static shape; without a GPU the step runs as it is."""

    def __init__(self, step):
        self.step, self.graphs = step, {}

    def __call__(self, batch):
        arrays = tensors(batch)  # no copy
        if not arrays["mel"].is_cuda:
            return self.step(arrays)
        if batch.shape not in self.graphs:
            self.graphs[batch.shape] = self.capture(arrays)
        graph, inputs, loss = self.graphs[batch.shape]
        for name, array in arrays.items():
            inputs[name].copy_(array)
        graph.replay()
        return loss

    def capture(self, arrays):
        inputs = {name: array.clone() for name, array in arrays.items()}
        aside = torch.cuda.Stream()
        aside.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(aside):  # libraries create what they keep outside of the capture
            for _ in range(2):
                self.step(inputs)
        torch.cuda.current_stream().wait_stream(aside)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
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
        model = Denoiser(mels=80).to(options.device)
        optimizer = torch.optim.AdamW(model.parameters(), 1e-3, capturable=options.device != "cpu")

        def step(arrays):
            optimizer.zero_grad()
            loss = model.loss(arrays)
            loss.backward()
            optimizer.step()
            return loss.detach()

        captured = CapturedStep(step)
        for _ in range(options.epochs):
            losses = [captured(batch).clone() for batch in loader]
            print(f"epoch {loader.epoch}: loss {torch.stack(losses).mean().item():.3f}, {len(captured.graphs)} captures, "
                  f"waited {loader.stats()['consumer_waits_s']:.2f} s so far")


if __name__ == "__main__":
    main()
