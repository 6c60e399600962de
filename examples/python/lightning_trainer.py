"""The data set in Lightning: its batches are on their device and shared among the ranks already.

    python examples/python/lightning_trainer.py build/demo/corpus
"""
import argparse

import lightning
import torch

import myxtts.torch


class Denoiser(lightning.LightningModule):
    """Finds the mel behind noise: a stand-in for your model."""

    def __init__(self, corpus, batch_size):
        super().__init__()
        self.corpus, self.batch_size = corpus, batch_size
        self.layer = torch.nn.Conv1d(80, 80, 5, padding=2)

    def training_step(self, batch, _):
        mel = batch["mel"].transpose(1, 2)
        loss = (self.layer(mel + torch.randn_like(mel)) - mel).square().mean()
        self.log("loss", loss, batch_size=len(mel))
        return loss

    def train_dataloader(self):  # Lightning asks for it when ranks and devices are known
        dataset = myxtts.torch.dataset(self.corpus, batch_size=self.batch_size)
        return torch.utils.data.DataLoader(dataset, batch_size=None)

    def configure_optimizers(self):
        return torch.optim.AdamW(self.parameters(), 1e-3)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpus")
    parser.add_argument("--batch-size", type=int, default=16)
    options = parser.parse_args()
    trainer = lightning.Trainer(max_epochs=2, use_distributed_sampler=False, logger=False, enable_checkpointing=False)
    trainer.fit(Denoiser(options.corpus, options.batch_size))
    print(f"{trainer.global_step} steps, loss {trainer.callback_metrics['loss']:.3f}")


if __name__ == "__main__":
    main()
