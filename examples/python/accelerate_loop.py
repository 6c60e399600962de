"""The data set in a loop of Accelerate's: its batches are on their device and shared among the ranks already.

    python examples/python/accelerate_loop.py build/demo/corpus
"""
import argparse

import accelerate
import torch

import myxtts.torch


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    accelerator = accelerate.Accelerator()
    layer = torch.nn.Conv1d(80, 80, 5, padding=2)
    model, optimizer = accelerator.prepare(layer, torch.optim.AdamW(layer.parameters(), 1e-3))
    dataset = myxtts.torch.dataset(options.corpus, batch_size=options.batch_size, device=str(accelerator.device))
    loader = torch.utils.data.DataLoader(dataset, batch_size=None)  # as it is, without prepare()
    for epoch in range(2):
        for batch in loader:
            mel = batch["mel"].transpose(1, 2)
            loss = (model(mel + torch.randn_like(mel)) - mel).square().mean()
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
        accelerator.print(f"epoch {epoch}: loss {loss.item():.3f}")


if __name__ == "__main__":
    main()
