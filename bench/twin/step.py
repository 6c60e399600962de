"""A training step of the twin, as PyTorch users write it: bf16, gradients clipped at 5, fused AdamW, an optional EMA
of the weights. Forward, loss and backward may be compiled; clipping and the optimiser are torch's own fused calls."""
import copy

import torch

from twin.voice import stronger

DROPOUT = 0.1


def torch_dropout(x, site, times=1):
    """PyTorch's own, which it compiles and captures best."""
    return torch.nn.functional.dropout(x, stronger(DROPOUT, times))


MODES = ("eager", "compile", "reduce-overhead")


class Trainer:
    """weights="autocast": fp32 weights under autocast. "masters": bf16 weights, with fp32 ones that AdamW changes.
    `ema`: the decay of an EMA of the weights, or None. `dynamic` goes to torch.compile."""

    def __init__(self, voice, mode="eager", weights="autocast", ema=None, learning_rate=1e-4, dynamic=None):
        self.device = next(voice.parameters()).device
        self.autocast, self.ema_decay = weights == "autocast", ema
        self.masters = [p.detach().clone().requires_grad_() for p in voice.parameters()] if weights == "masters" else None
        self.voice = voice.bfloat16() if self.masters else voice
        self.parameters = list(self.voice.parameters())
        self.trained = self.masters or self.parameters
        for master in self.masters or ():
            master.grad = torch.zeros_like(master)
        self.ema = copy.deepcopy([p.detach() for p in self.trained]) if ema is not None else None
        self.optimizer = torch.optim.AdamW(self.trained, lr=learning_rate, fused=True)
        self.captured = mode == "reduce-overhead" and self.device.type == "cuda"
        self.loss = self.plain_loss
        if mode != "eager":
            self.loss = torch.compile(self.plain_loss, fullgraph=True, dynamic=dynamic, mode=mode if mode != "compile" else None)

    def plain_loss(self, batch):
        time = torch.rand(batch["mel"].shape[0], device=self.device)
        noise = torch.randn_like(batch["mel"])
        with torch.autocast(self.device.type, torch.bfloat16, enabled=self.autocast):
            return self.voice.losses(**batch, time=time, noise=noise, align="given", dropout=torch_dropout)["total"]

    def step(self, batch):
        """`batch`: the tensors of Voice.losses with token_of_frame. Returns the loss, without waiting for the device."""
        if self.captured:
            torch.compiler.cudagraph_mark_step_begin()
        loss = self.loss(batch)
        loss.backward()
        with torch.no_grad():
            if self.masters:
                torch._foreach_copy_([p.grad for p in self.masters], [p.grad for p in self.parameters])
            torch.nn.utils.clip_grad_norm_(self.trained, 5.0, foreach=True)
            self.optimizer.step()
            if self.masters:
                torch._foreach_copy_(self.parameters, self.masters)
            if self.ema:
                torch._foreach_lerp_(self.ema, self.trained, 1 - self.ema_decay)
        for p in self.parameters:
            p.grad = None
        return loss.detach().clone()
