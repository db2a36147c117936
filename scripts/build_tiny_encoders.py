"""Build tiny encoders with random weights in the layout of the Hugging Face Hub, with results of `transformers`.

    pip install torch transformers onnx
    python scripts/build_tiny_encoders.py --out tests/features/encoders/tiny

Each folder has the networks, their settings, and in `reference.npz` the pixels that the reference processor makes of
two pictures, and their embeddings. `text_reference.npz` has the tokens and embeddings of `TEXTS`. Tests compare with
them.
"""

import argparse
import json
from pathlib import Path

import numpy as np
import onnx
import tokenizers
import torch
import transformers
from PIL import Image
from transformers.models.bit.image_processing_pil_bit import BitImageProcessorPil
from transformers.models.clip.image_processing_pil_clip import CLIPImageProcessorPil
from transformers.models.siglip.image_processing_pil_siglip import SiglipImageProcessorPil
from transformers.models.siglip2.tokenization_siglip2 import Siglip2Tokenizer

ROOT = Path(__file__).parents[1]
SIDE = 32
SIZES = ((90, 61), (47, 95))
"""Width and height of the pictures."""
VISION = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "image_size": SIDE, "patch_size": 8}
MLP = {"intermediate_size": 12}
TEXT = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 2, "attn_implementation": "eager", **MLP}
TEXTS = (
    "a photo of a Great White Shark.",
    "toad, frog",
    "",
    "  two   blanks\tand\na line",
    "It's 2026: 3 1/2 caf\u00e9s!",
    "cafe\u0301 \u0130STANBUL \u039f\u0394\u039f\u03a3",
    "\u732b\u306e\u5199\u771f \U0001f408",
    "<eos> <|endoftext|> <pad>",
    "a photo of " + "very " * 90 + "long",
)


class Outputs(torch.nn.Module):
    """Network with these outputs alone."""

    def __init__(self, network: torch.nn.Module, names: list[str]) -> None:
        super().__init__()
        self.network, self.names = network.eval(), names

    def forward(self, values: torch.Tensor) -> tuple[torch.Tensor, ...]:
        results = self.network(values)
        return tuple(getattr(results, name) for name in self.names)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, default=ROOT / "tests/features/encoders/tiny")
    out = parser.parse_args().out
    (out / "pictures").mkdir(parents=True, exist_ok=True)
    for size in SIZES:
        draw_picture(*size).save(out / f"pictures/{size[0]}x{size[1]}.png", optimize=True)
    torch.manual_seed(0)
    build_clip(out / "clip-base")
    build_dinov2(out / "dinov2-small")
    build_siglip2(out / "siglip2-base")
    torch.manual_seed(1)
    build_clip_text(out / "clip-base")
    build_siglip2_text(out / "siglip2-base")


def build_clip_text(folder: Path) -> None:
    special = ["<|startoftext|>", "<|endoftext|>"]
    model = tokenizers.models.BPE(end_of_word_suffix="</w>", unk_token=special[1])
    learner = tokenizers.trainers.BpeTrainer(
        vocab_size=700, special_tokens=special, end_of_word_suffix="</w>", show_progress=False,
        initial_alphabet=tokenizers.pre_tokenizers.ByteLevel.alphabet(),
    )  # fmt: skip
    vocabulary, merges = learn_pieces(model, learner, transformers.CLIPTokenizer()._tokenizer)
    for byte in sorted(learner.initial_alphabet):
        vocabulary.setdefault(f"{byte}</w>", len(vocabulary))
    tokenizer = transformers.CLIPTokenizer(vocabulary, merges)
    eos = tokenizer.eos_token_id
    config = transformers.CLIPTextConfig(
        **TEXT, vocab_size=len(tokenizer), projection_dim=6, bos_token_id=tokenizer.bos_token_id, eos_token_id=eos
    )
    network = Outputs(transformers.CLIPTextModelWithProjection(config), ["text_embeds"])
    write_text(folder, network, tokenizer, {"max_length": 77}, (0, 1))


def build_siglip2_text(folder: Path) -> None:
    special = ["<pad>", "<eos>", "<bos>", "<unk>", "<mask>", *(f"<0x{byte:02X}>" for byte in range(256))]
    model = tokenizers.models.BPE(unk_token=special[3], fuse_unk=True, byte_fallback=True)
    learner = tokenizers.trainers.BpeTrainer(vocab_size=500, special_tokens=special, show_progress=False)
    vocabulary, merges = learn_pieces(model, learner, Siglip2Tokenizer()._tokenizer)
    tokenizer = Siglip2Tokenizer(vocabulary, merges, add_bos_token=False, add_eos_token=True, padding_side="right")
    config = transformers.SiglipTextConfig(**TEXT, vocab_size=len(tokenizer), max_position_embeddings=64)
    network = Outputs(transformers.SiglipTextModel(config), ["pooler_output"])
    write_text(folder, network, tokenizer, {"max_length": 64, "padding": "max_length"}, (0,))


def learn_pieces(
    model: tokenizers.models.Model, learner: tokenizers.trainers.Trainer, reference: tokenizers.Tokenizer
) -> tuple[dict[str, int], list[tuple[str, str]]]:
    """Return the vocabulary and the merges that a tokenizer learns from some of `TEXTS`."""
    tokenizer = tokenizers.Tokenizer(model)
    tokenizer.normalizer, tokenizer.pre_tokenizer = reference.normalizer, reference.pre_tokenizer
    tokenizer.train_from_iterator(TEXTS[:5], learner)
    content = json.loads(tokenizer.to_str())["model"]
    return content["vocab"], [tuple(merge) for merge in content["merges"]]


def write_text(
    folder: Path, network: Outputs, tokenizer: object, options: dict[str, object], axes: tuple[int, ...]
) -> None:
    """Write a text tower, its tokenizer, and what it makes of `TEXTS`."""
    tokens = [tokenizer(text, truncation=True, **options)["input_ids"] for text in TEXTS]
    with torch.no_grad():
        embeddings = np.concatenate([network(torch.tensor([ids]))[0].numpy() for ids in tokens])
    lengths = np.array([len(ids) for ids in tokens])
    np.savez_compressed(
        folder / "text_reference.npz", texts=np.array(TEXTS), tokens=np.concatenate(tokens), lengths=lengths,
        embeddings=embeddings,
    )  # fmt: skip
    backend = tokenizer.backend_tokenizer
    backend.no_truncation()
    backend.no_padding()
    if isinstance(tokenizer, Siglip2Tokenizer):  # the hub's file has no lower case, unlike the class
        backend.normalizer = tokenizers.normalizers.Replace(" ", "\u2581")
    (folder / "tokenizer.json").write_text(backend.to_str())
    write_network(folder / "onnx/text_model.onnx", network, torch.tensor([tokens[0]]), "input_ids", axes)


def build_clip(folder: Path) -> None:
    config = transformers.CLIPVisionConfig(**VISION, **MLP, projection_dim=6)
    network = Outputs(transformers.CLIPVisionModelWithProjection(config), ["image_embeds"])
    processor = CLIPImageProcessorPil(size={"shortest_edge": SIDE}, crop_size={"height": SIDE, "width": SIDE})
    write_vision(folder, network, processor, "vision_model.onnx")


def build_dinov2(folder: Path) -> None:
    config = transformers.Dinov2Config(**VISION | {"image_size": 40}, mlp_ratio=2)
    network = Outputs(transformers.Dinov2Model(config), ["last_hidden_state", "pooler_output"])
    processor = BitImageProcessorPil(
        size={"shortest_edge": SIDE + 5}, crop_size={"height": SIDE, "width": SIDE},
        image_mean=[0.485, 0.456, 0.406], image_std=[0.229, 0.224, 0.225],
    )  # fmt: skip
    write_vision(folder, network, processor, "model.onnx", n_outputs=1)


def build_siglip2(folder: Path) -> None:
    config = transformers.SiglipVisionConfig(**VISION, **MLP)
    network = Outputs(transformers.SiglipVisionModel(config), ["last_hidden_state", "pooler_output"])
    processor = SiglipImageProcessorPil(size={"height": SIDE, "width": SIDE}, resample=Image.Resampling.BILINEAR)
    write_vision(folder, network, processor, "vision_model.onnx")


def write_vision(folder: Path, network: Outputs, processor: object, name: str, n_outputs: int | None = None) -> None:
    """Write a network with its first outputs, its settings, and what it makes of the pictures: its last output."""
    folder.mkdir(parents=True, exist_ok=True)
    pixels = np.concatenate([processor(draw_picture(*size), return_tensors="np")["pixel_values"] for size in SIZES])
    with torch.no_grad():
        embeddings = network(torch.from_numpy(pixels))[-1].numpy()
    np.savez_compressed(folder / "reference.npz", pixels=pixels, embeddings=embeddings)
    settings = {key: value for key, value in processor.to_dict().items() if not key.startswith("_")}
    (folder / "preprocessor_config.json").write_text(json.dumps(settings, indent=2) + "\n")
    network.names = network.names[:n_outputs]
    write_network(folder / "onnx" / name, network, torch.zeros(1, 3, SIDE, SIDE), "pixel_values", (0, 1, 2, 3))


def write_network(path: Path, network: Outputs, example: torch.Tensor, name: str, axes: tuple[int, ...]) -> None:
    path.parent.mkdir(exist_ok=True)
    sizes = {name: {axis: f"{name}_{axis}" for axis in axes}, **{output: {0: "batch"} for output in network.names}}
    torch.onnx.export(
        network, (example,), str(path), input_names=[name], output_names=network.names, dynamic_axes=sizes,
        dynamo=False, opset_version=17,
    )  # fmt: skip
    model = onnx.load(path)
    for node in model.graph.node:
        node.ClearField("doc_string")
        node.ClearField("name")
    onnx.save(model, path)


def draw_picture(width: int, height: int) -> Image.Image:
    """Return a picture of smooth colours and noise."""
    across, down = np.meshgrid(np.linspace(0, 1, width), np.linspace(0, 1, height))
    noise = np.random.default_rng(width).random((height, width, 3))
    colours = np.stack([across, down, np.abs(across - down)], axis=-1)
    return Image.fromarray((255 * (0.7 * colours + 0.3 * noise)).astype(np.uint8))


if __name__ == "__main__":
    main()
