"""Figures of well-known models on well-known GPUs, with how far they can be trusted.

They are roofline estimates, not measurements: prefill from dense peak FLOP/s times an assumed
utilisation (linear and attention parts apart), decode from weights plus KV read per step over
memory bandwidth times an assumed efficiency. Each row carries its assumptions. Against published
profiling of the linear part at 1,024 tokens and more, the linear coefficient of the A100 row is
within 6 % (8B model measured), those of the A40 and H100 rows within 10 % (7B model measured,
scaled with the parameter count); for the other GPUs treat it as good to about 30 %.
"""

from dataclasses import dataclass
from typing import Any

from edgegym.world.errors import ScenarioError

_GIB = 2**30


@dataclass(frozen=True, kw_only=True)
class HardwareFigures:
    """One model on one node, with the assumptions behind the estimate."""

    name: str
    """Preset name: model at GPU."""
    model: str
    """Model name as published."""
    gpu: str
    """GPU name as sold."""
    tensor_parallel: int
    """GPUs that share the model."""
    weights: str
    """Weight format."""
    kv_bytes_per_token: int
    """KV cache of one token, bytes."""
    weights_bytes: int
    """Model weights, bytes."""
    usable_kv_gib: float
    """Memory left for KV after weights, activations and reserve, GiB."""
    prefill_linear_s: float
    """Seconds per prompt token."""
    prefill_quadratic_s: float
    """Seconds per squared prompt token."""
    prefill_floor_s: float
    """Least time of the linear part of a prefill (one pass over the weights), seconds."""
    decode_ms: tuple[tuple[int, float], ...]
    """Milliseconds per output token by batch size."""
    dense_tflops: float
    """Assumed peak, TFLOP/s."""
    bandwidth_gb_per_s: float
    """Assumed peak memory bandwidth, GB/s."""
    flop_utilization: tuple[float, float]
    """Assumed share of the peak reached in the linear and in the attention part."""
    bandwidth_efficiency: float
    """Assumed share of the peak bandwidth reached in decode."""

    @property
    def accuracy(self) -> str:
        """How the figures came about, in one sentence."""
        linear, attention = self.flop_utilization
        return (
            f"roofline estimate: {self.dense_tflops:g} TFLOP/s at {linear:.0%} (linear) and "
            f"{attention:.0%} (attention), {self.bandwidth_gb_per_s:g} GB/s at "
            f"{self.bandwidth_efficiency:.0%}; not a measurement"
        )

    def as_hardware(self) -> dict[str, Any]:
        """Return the keys of a scenario's ``hardware`` block."""
        return {
            "memory_bytes": self.weights_bytes + round(self.usable_kv_gib * _GIB),
            "weights_bytes": self.weights_bytes,
            "kv_bytes_per_token": self.kv_bytes_per_token,
            "prefill": {
                "linear_s": self.prefill_linear_s,
                "quadratic_s": self.prefill_quadratic_s,
                "floor_s": self.prefill_floor_s,
                "attention": "context",
            },
            "decode": {
                "kind": "tpot",
                "tpot_s": {batch: ms / 1000.0 for batch, ms in self.decode_ms},
            },
        }


HARDWARE_PRESETS: tuple[HardwareFigures, ...] = (
    HardwareFigures(
        name="llama-3.1-8b@l4",
        model="Llama-3.1-8B",
        gpu="L4",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=131_072,
        weights_bytes=16_059_990_016,
        usable_kv_gib=4.29,
        prefill_linear_s=0.000256,
        prefill_quadratic_s=6.19e-09,
        prefill_floor_s=0.0669,
        decode_ms=((1, 68.0), (4, 71.4), (8, 75.9), (16, 84.8), (32, 102.7)),
        dense_tflops=121,
        bandwidth_gb_per_s=300,
        flop_utilization=(0.45, 0.35),
        bandwidth_efficiency=0.8,
    ),
    HardwareFigures(
        name="llama-3.1-8b-fp8@l4",
        model="Llama-3.1-8B",
        gpu="L4",
        tensor_parallel=1,
        weights="fp8-w8a16",
        kv_bytes_per_token=131_072,
        weights_bytes=8_029_995_008,
        usable_kv_gib=11.77,
        prefill_linear_s=0.000256,
        prefill_quadratic_s=6.19e-09,
        prefill_floor_s=0.0335,
        decode_ms=((1, 34.6), (4, 37.9), (8, 42.4), (16, 51.4), (32, 69.2)),
        dense_tflops=121,
        bandwidth_gb_per_s=300,
        flop_utilization=(0.45, 0.35),
        bandwidth_efficiency=0.8,
    ),
    HardwareFigures(
        name="qwen2.5-7b@l4",
        model="Qwen2.5-7B",
        gpu="L4",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=57_344,
        weights_bytes=15_230_566_400,
        usable_kv_gib=5.07,
        prefill_linear_s=0.00024,
        prefill_quadratic_s=4.74e-09,
        prefill_floor_s=0.0635,
        decode_ms=((1, 64.0), (4, 65.4), (8, 67.4), (16, 71.3), (32, 79.1)),
        dense_tflops=121,
        bandwidth_gb_per_s=300,
        flop_utilization=(0.45, 0.35),
        bandwidth_efficiency=0.8,
    ),
    HardwareFigures(
        name="llama-3.1-8b@rtx4090",
        model="Llama-3.1-8B",
        gpu="RTX4090",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=131_072,
        weights_bytes=16_059_990_016,
        usable_kv_gib=5.28,
        prefill_linear_s=0.00013,
        prefill_quadratic_s=3.53e-09,
        prefill_floor_s=0.0187,
        decode_ms=((1, 19.1), (4, 20.0), (8, 21.3), (16, 23.8), (32, 28.8)),
        dense_tflops=165.2,
        bandwidth_gb_per_s=1008,
        flop_utilization=(0.65, 0.45),
        bandwidth_efficiency=0.85,
    ),
    HardwareFigures(
        name="llama-3.2-3b@rtx4090",
        model="Llama-3.2-3B",
        gpu="RTX4090",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=114_688,
        weights_bytes=6_425_149_440,
        usable_kv_gib=14.26,
        prefill_linear_s=5.25e-05,
        prefill_quadratic_s=2.31e-09,
        prefill_floor_s=0.0075,
        decode_ms=((1, 7.8), (4, 8.6), (8, 9.7), (16, 11.9), (32, 16.3)),
        dense_tflops=165.2,
        bandwidth_gb_per_s=1008,
        flop_utilization=(0.65, 0.45),
        bandwidth_efficiency=0.85,
    ),
    HardwareFigures(
        name="llama-3.1-8b@l40s",
        model="Llama-3.1-8B",
        gpu="L40S",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=131_072,
        weights_bytes=16_059_990_016,
        usable_kv_gib=23.91,
        prefill_linear_s=7.42e-05,
        prefill_quadratic_s=1.81e-09,
        prefill_floor_s=0.0232,
        decode_ms=((1, 23.6), (4, 24.8), (8, 26.3), (16, 29.4), (32, 35.7)),
        dense_tflops=362,
        bandwidth_gb_per_s=864,
        flop_utilization=(0.52, 0.4),
        bandwidth_efficiency=0.8,
    ),
    HardwareFigures(
        name="llama-3.1-8b@a40",
        model="Llama-3.1-8B",
        gpu="A40",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=131_072,
        weights_bytes=16_059_990_016,
        usable_kv_gib=23.91,
        prefill_linear_s=0.000139,
        prefill_quadratic_s=3.89e-09,
        prefill_floor_s=0.03,
        decode_ms=((1, 30.5), (4, 32.0), (8, 34.0), (16, 38.0), (32, 46.0)),
        dense_tflops=149.7,
        bandwidth_gb_per_s=696,
        flop_utilization=(0.67, 0.45),
        bandwidth_efficiency=0.77,
    ),
    HardwareFigures(
        name="llama-3.1-8b@a100",
        model="Llama-3.1-8B",
        gpu="A100-80G",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=131_072,
        weights_bytes=16_059_990_016,
        usable_kv_gib=55.41,
        prefill_linear_s=6.99e-05,
        prefill_quadratic_s=1.87e-09,
        prefill_floor_s=0.0113,
        decode_ms=((1, 11.4), (4, 12.0), (8, 12.8), (16, 14.3), (32, 17.3)),
        dense_tflops=312,
        bandwidth_gb_per_s=2039,
        flop_utilization=(0.64, 0.45),
        bandwidth_efficiency=0.7,
    ),
    HardwareFigures(
        name="llama-3.1-8b@h100",
        model="Llama-3.1-8B",
        gpu="H100-SXM",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=131_072,
        weights_bytes=16_059_990_016,
        usable_kv_gib=55.41,
        prefill_linear_s=2.35e-05,
        prefill_quadratic_s=6.63e-10,
        prefill_floor_s=0.0069,
        decode_ms=((1, 7.1), (4, 7.4), (8, 7.9), (16, 8.8), (32, 10.7)),
        dense_tflops=989,
        bandwidth_gb_per_s=3350,
        flop_utilization=(0.6, 0.4),
        bandwidth_efficiency=0.69,
    ),
    HardwareFigures(
        name="llama-3.1-8b@orin",
        model="Llama-3.1-8B",
        gpu="AGX-Orin-64G",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=131_072,
        weights_bytes=16_059_990_016,
        usable_kv_gib=34.44,
        prefill_linear_s=0.000938,
        prefill_quadratic_s=2.47e-08,
        prefill_floor_s=0.098,
        decode_ms=((1, 99.7), (4, 104.6), (8, 111.1), (16, 124.2), (32, 150.5)),
        dense_tflops=42.5,
        bandwidth_gb_per_s=204.8,
        flop_utilization=(0.35, 0.25),
        bandwidth_efficiency=0.8,
    ),
    HardwareFigures(
        name="llama-3.2-3b@orin",
        model="Llama-3.2-3B",
        gpu="AGX-Orin-64G",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=114_688,
        weights_bytes=6_425_149_440,
        usable_kv_gib=43.42,
        prefill_linear_s=0.000379,
        prefill_quadratic_s=1.62e-08,
        prefill_floor_s=0.0392,
        decode_ms=((1, 40.6), (4, 45.0), (8, 50.7), (16, 62.2), (32, 85.1)),
        dense_tflops=42.5,
        bandwidth_gb_per_s=204.8,
        flop_utilization=(0.35, 0.25),
        bandwidth_efficiency=0.8,
    ),
    HardwareFigures(
        name="qwen2.5-3b@orin",
        model="Qwen2.5-3B",
        gpu="AGX-Orin-64G",
        tensor_parallel=1,
        weights="bf16",
        kv_bytes_per_token=36_864,
        weights_bytes=6_171_394_048,
        usable_kv_gib=43.65,
        prefill_linear_s=0.000373,
        prefill_quadratic_s=1.39e-08,
        prefill_floor_s=0.0377,
        decode_ms=((1, 38.1), (4, 39.5), (8, 41.4), (16, 45.0), (32, 52.4)),
        dense_tflops=42.5,
        bandwidth_gb_per_s=204.8,
        flop_utilization=(0.35, 0.25),
        bandwidth_efficiency=0.8,
    ),
    HardwareFigures(
        name="llama-3-70b@h100x4",
        model="Llama-3-70B",
        gpu="H100-SXM",
        tensor_parallel=4,
        weights="bf16",
        kv_bytes_per_token=327_680,
        weights_bytes=141_104_775_168,
        usable_kv_gib=150.07,
        prefill_linear_s=6.41e-05,
        prefill_quadratic_s=9.2e-10,
        prefill_floor_s=0.017,
        decode_ms=((1, 17.0), (4, 17.3), (8, 17.6), (16, 18.2), (32, 19.5)),
        dense_tflops=989,
        bandwidth_gb_per_s=3350,
        flop_utilization=(0.6, 0.4),
        bandwidth_efficiency=0.69,
    ),
)


def hardware_figures(name: str) -> HardwareFigures:
    """Return the figures of a hardware preset.

    Parameters
    ----------
    name : str
        Such as ``"llama-3.1-8b@l40s"``.

    Raises
    ------
    ScenarioError
        If there is no such preset; the message lists them.
    """
    for figures in HARDWARE_PRESETS:
        if figures.name == name:
            return figures
    known = ", ".join(figures.name for figures in HARDWARE_PRESETS)
    raise ScenarioError(f"hardware.preset = '{name}': no such preset (known: {known})")
