"""The table of vendors: names, classes, what each needs, and what is known of it."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass

from schema.vendors.needs import VendorNeed


@dataclass(frozen=True, slots=True)
class Vendor:
    """A backend whose partitioner, quantizer or flow is a vendor's.

    Attributes:
        alias: name in recipes
        backend: id of its payloads; empty for one that writes plain instructions
        title: as people write it
        hardware: that it is for
        place: dotted name of its partitioner in the package, empty without one
        make: dotted name of our function that reads options and creates the partitioner
        flow: dotted name of our function that creates its flow, where it has one and no partitioner
        also: other spellings of the alias
        needs: without which it cannot be used
        packages: requirements for pip, empty if they cannot be had from the package index
        source: how to get what pip has not
        quantizer: dotted name of our function that creates its quantizer, empty without one
        operators: dotted name of our function that reads the operators it takes
        listed: sources below the package's backends, with the operators it takes, and the variable
            that has these there, empty for any; read without importing them
        joins: dotted name of our context in which its identifiers get true debug handles
        works: what works on a machine without its hardware
        traps: known ones
        on_device: its payloads run on its hardware only
        whole_regions: it takes a quantized operator with all that is quantized with it, or not
        explicit_strides: it does not know that pooling without strides has those of its kernel
        real_weights: it reads no weights in integers but those of its own quantizer
        real_results: a partition that ends in stored integers returns reals instead
    """

    alias: str
    backend: str
    title: str
    hardware: str
    place: str = ""
    make: str = ""
    flow: str = ""
    also: tuple[str, ...] = ()
    needs: tuple[VendorNeed, ...] = ()
    packages: tuple[str, ...] = ()
    source: str = ""
    quantizer: str = ""
    operators: str = ""
    listed: tuple[str, ...] = ()
    joins: str = ""
    works: str = ""
    traps: tuple[str, ...] = ()
    on_device: bool = False
    whole_regions: bool = False
    explicit_strides: bool = False
    real_weights: bool = False
    real_results: bool = False

    @property
    def class_name(self) -> str:
        """Return the name of the class of its partitioner."""
        return self.place.partition(":")[2]

    @property
    def names(self) -> tuple[str, ...]:
        """Return every name that it has in recipes."""
        return tuple(dict.fromkeys((self.alias, *self.also, *filter(None, (self.class_name,)))))

    @property
    def install(self) -> str:
        """Return how to get it."""
        if not self.packages:
            return self.source
        words = " ".join(f"'{one}'" if set(one) & set("<>") else one for one in self.packages)
        return f"pip install {words}"

    def missing(self, paths: Sequence[str] | None = None, commands: str = "") -> str:
        """Return the sentence of the first need that is not met, empty if all are.

        Args:
            paths: folders of packages; None for those of this interpreter
            commands: path for programs; empty for that of this interpreter
        """
        unmet = (one.sentence for one in self.needs if not one.is_met(paths, commands))
        return next(unmet, "")


_M = "compiler.backends.vendors."
_HOME = "executorch/backends/"
_PACKAGE = VendorNeed("executorch", missing="the executorch package is not installed")
_NO_WHEEL = "the Linux wheel of executorch leaves it out"
_ARM = ("tosa-tools==2026.5.0", "ml_dtypes>=0.5.1")
_TOSA = VendorNeed("tosa_serializer")
_DEVICE_RUN = "run on the device, and open its trace beside the record"
VENDORS: tuple[Vendor, ...] = (
    Vendor(
        "openvino",
        "OpenvinoBackend",
        "OpenVINO",
        "Intel processors, graphics and NPU",
        "executorch.backends.openvino.partitioner:OpenvinoPartitioner",
        f"{_M}openvino:partitioner",
        also=("ov",),
        needs=(_PACKAGE, VendorNeed("openvino"), VendorNeed("nncf")),
        packages=("openvino>=2025.1,<2026", "nncf==3.1.0"),
        quantizer=f"{_M}openvino:quantizer",
        operators=f"{_M}openvino:operators",
        real_weights=True,
        real_results=True,
        works="compile; payloads run on the runtime of the openvino package",
        traps=(
            "processors with AMX compute in bf16 unless the precision hint is f32",
            "its own skip lists have no effect; rules of ETScope do",
            "its front end refuses int8 of other quantizers than its own",
            "it needs networkx below 3.5 and numpy below 2.4",
        ),
    ),
    Vendor(
        "coreml",
        "CoreMLBackend",
        "Core ML",
        "Apple processors, graphics and Neural Engine; iOS 16, macOS 13",
        "executorch.backends.apple.coreml.partition:CoreMLPartitioner",
        f"{_M}coreml:partitioner",
        also=("core-ml",),
        needs=(_PACKAGE, VendorNeed("coremltools")),
        packages=("coremltools>=9",),
        quantizer=f"{_M}coreml:quantizer",
        operators=f"{_M}coreml:operators",
        explicit_strides=True,
        real_results=True,
        works="compile as a model; compiled models need macOS",
        traps=(
            "it computes in fp16 unless precision=FLOAT32",
            "quantized programs need target=iOS17 or later, those that write to buffers iOS18",
            "lower_full_graph ignores the operators to skip",
        ),
    ),
    Vendor(
        "vulkan",
        "VulkanBackend",
        "Vulkan",
        "graphics of Android devices, Vulkan 1.1",
        "executorch.backends.vulkan.partitioner.vulkan_partitioner:VulkanPartitioner",
        f"{_M}vulkan:partitioner",
        needs=(_PACKAGE, VendorNeed(f"{_HOME}vulkan/partitioner")),
        packages=("executorch",),
        quantizer=f"{_M}vulkan:quantizer",
        joins=f"{_M}vulkan:joining",
        operators=f"{_M}vulkan:operators",
        works="compile; payloads are executed by torch",
        traps=(
            "textures are limited to 16384 by default, 2048 on desktop graphics:"
            " small_texture_limits=true",
            "the quantizer takes linear layers alone, and its dynamic activations stay real",
            "programs that write to buffers need alias_buffer_mutations=true",
        ),
    ),
    Vendor(
        "webgpu",
        "VulkanBackend",
        "WebGPU",
        "browsers and WebGPU",
        "executorch.backends.webgpu.partitioner.partitioner:WebGPUPartitioner",
        f"{_M}vulkan:web_partitioner",
        also=("web-gpu",),
        needs=(_PACKAGE, VendorNeed(f"{_HOME}webgpu")),
        packages=("executorch",),
        operators=f"{_M}vulkan:operators",
        works="compile; payloads are those of Vulkan and are executed by torch",
        traps=("its runtime has no tracer: a run in a browser leaves no trace",),
    ),
    Vendor(
        "tosa",
        "TOSABackend",
        "TOSA",
        "the reference of Arm's operators, no hardware of its own",
        "executorch.backends.arm.tosa.partitioner:TOSAPartitioner",
        f"{_M}arm:tosa",
        needs=(_PACKAGE, _TOSA),
        packages=_ARM,
        quantizer=f"{_M}arm:tosa_quantizer",
        operators=f"{_M}arm:operators",
        joins="compiler.backends.tosa_handles:joining",
        works="compile; payloads are executed by torch, integers bit exact",
        traps=("tosa-tools needs flatbuffers 25.2.10 and numpy below 2.2",),
        whole_regions=True,
    ),
    Vendor(
        "ethos-u",
        "EthosUBackend",
        "Ethos-U",
        "Arm Ethos-U55, U65 and U85 beside a Cortex-M or Cortex-A",
        "executorch.backends.arm.ethosu:EthosUPartitioner",
        f"{_M}arm:ethos_u",
        also=("ethosu", "ethos_u"),
        needs=(_PACKAGE, _TOSA, VendorNeed("ethosu")),
        packages=(*_ARM, "ethos-u-vela==5.1.0"),
        quantizer=f"{_M}arm:ethos_u_quantizer",
        operators=f"{_M}arm:operators",
        joins="compiler.backends.tosa_handles:joining",
        works="compile; times are Vela's estimate",
        traps=(
            "it takes integers only: quantize the whole model",
            "U55 has no memory mode Dedicated_Sram",
        ),
        whole_regions=True,
    ),
    Vendor(
        "vgf",
        "VgfBackend",
        "VGF",
        "graphics with Arm's machine learning extensions for Vulkan",
        "executorch.backends.arm.vgf:VgfPartitioner",
        f"{_M}arm:vgf",
        needs=(_PACKAGE, _TOSA, VendorNeed(command="model-converter")),
        packages=(
            *_ARM,
            "ai_ml_sdk_model_converter==0.11.0",
            "ai_ml_sdk_vgf_library==0.11.0",
        ),
        quantizer=f"{_M}arm:vgf_quantizer",
        operators=f"{_M}arm:operators",
        joins="compiler.backends.tosa_handles:joining",
        works="compile",
        traps=("release 0.10.0 of the converter needs glibc 2.38",),
        whole_regions=True,
    ),
    Vendor(
        "cortex-m",
        "",
        "Cortex-M",
        "Arm Cortex-M0 to M85, by CMSIS-NN",
        flow=f"{_M}cortex_m:flow",
        also=("cortexm", "cortex_m"),
        needs=(_PACKAGE, VendorNeed(f"{_HOME}cortex_m"), _TOSA),
        packages=_ARM,
        quantizer=f"{_M}arm:cortex_m_quantizer",
        works="compile; its operators are plain instructions, which run here bit by bit",
        traps=("convolutions need channels-last inputs",),
    ),
    Vendor(
        "cadence",
        "",
        "Cadence",
        "Xtensa HiFi4, HiFi5, Fusion G3 and Vision",
        flow=f"{_M}cadence:flow",
        needs=(_PACKAGE, VendorNeed(f"{_HOME}cadence")),
        packages=("executorch",),
        quantizer=f"{_M}cadence:quantizer",
        works="compile; its operators are plain instructions, which run here bit by bit",
        traps=("its quantizer and its fusion belong together: compile with both",),
    ),
    Vendor(
        "mps",
        "MPSBackend",
        "MPS",
        "graphics of Apple devices, macOS 12.4, iOS 15.4",
        "executorch.backends.apple.mps.partition.mps_partitioner:MPSPartitioner",
        f"{_M}coreml:mps",
        needs=(
            _PACKAGE,
            VendorNeed(
                f"{_HOME}apple/mps",
                missing="this release of executorch has no MPS backend: it was removed after 1.4",
            ),
        ),
        source="use the sources of executorch 1.4.1, whose compiler is plain Python",
        works="payloads are executed by torch",
        traps=("its compiler writes a transposed convolution as a plain one",),
    ),
    Vendor(
        "native",
        "NativeBackend",
        "native",
        "the runtime's own graphs, any processor",
        "executorch.backends.native.partitioner:NativePartitioner",
        f"{_M}vulkan:native",
        needs=(_PACKAGE, VendorNeed(f"{_HOME}native")),
        packages=("executorch",),
        works="compile; payloads are executed by torch",
    ),
    Vendor(
        "qnn",
        "QnnBackend",
        "QNN",
        "Qualcomm Snapdragon: HTP, GPU and LPAI",
        "executorch.backends.qualcomm.partition.qnn_partitioner:QnnPartitioner",
        f"{_M}devices:qnn",
        also=("qualcomm",),
        needs=(
            _PACKAGE,
            VendorNeed(
                variable="QNN_SDK_ROOT",
                missing="the QNN SDK is not here: QNN_SDK_ROOT does not name a folder",
            ),
        ),
        source="Qualcomm AI Engine Direct SDK, from qpm.qualcomm.com; set QNN_SDK_ROOT to it",
        quantizer=f"{_M}devices:qnn_quantizer",
        listed=("qualcomm/builders/op_*.py", "target"),
        works=_DEVICE_RUN,
        traps=(
            "the versions of SDK and device libraries have to match",
            "profiles count cycles; tensors that it dumps slow a run down, so do not take both",
        ),
        on_device=True,
    ),
    Vendor(
        "mediatek",
        "NeuropilotBackend",
        "MediaTek",
        "Dimensity 9300, 9400 and later",
        "executorch.backends.mediatek.partitioner:NeuropilotPartitioner",
        f"{_M}devices:mediatek",
        also=("neuropilot",),
        needs=(_PACKAGE, VendorNeed("mtk_converter"), VendorNeed("mtk_neuron")),
        source="NeuroPilot Express SDK, from neuropilot.mediatek.com",
        quantizer=f"{_M}devices:mediatek_quantizer",
        works=_DEVICE_RUN,
        traps=("its runtime logs one event for each call, none of what is inside",),
        on_device=True,
    ),
    Vendor(
        "samsung",
        "EnnBackend",
        "Samsung",
        "Exynos 2500 (E9955) and E9965",
        "executorch.backends.samsung.partition.enn_partitioner:EnnPartitioner",
        f"{_M}devices:samsung",
        also=("exynos", "enn"),
        needs=(
            _PACKAGE,
            VendorNeed(f"{_HOME}samsung/python", missing=f"{_NO_WHEEL}: its wrapper is not built"),
        ),
        source="Exynos AI LiteCore SDK, from soc-developer.semiconductor.samsung.com; build"
        " executorch with it",
        quantizer=f"{_M}devices:samsung_quantizer",
        listed=("samsung/builders/op_*.py", "target"),
        works=_DEVICE_RUN,
        traps=("its runtime logs one event for each call, none of what is inside",),
        on_device=True,
    ),
    Vendor(
        "nxp",
        "NeutronBackend",
        "NXP",
        "i.MX RT700 with a Neutron-C N3 NPU",
        "executorch.backends.nxp.neutron_partitioner:NeutronPartitioner",
        f"{_M}devices:nxp",
        also=("neutron",),
        needs=(
            _PACKAGE,
            VendorNeed("eiq_neutron_sdk", missing="the eIQ Neutron SDK is not installed"),
        ),
        source="the eIQ Neutron SDK: the package eiq-neutron-sdk of the index at eiq.nxp.com",
        quantizer=f"{_M}devices:nxp_quantizer",
        listed=("nxp/neutron_partitioner.py", "supported_ops"),
        whole_regions=True,
        works=_DEVICE_RUN,
        traps=(
            "it takes integers only: quantize the whole model",
            "only programs compiled with use_profiling=true log what is inside of a call",
        ),
        on_device=True,
    ),
    Vendor(
        "cuda",
        "CudaBackend",
        "CUDA",
        "NVIDIA graphics, by AOTInductor",
        "executorch.backends.cuda.cuda_partitioner:CudaPartitioner",
        f"{_M}devices:cuda",
        needs=(
            _PACKAGE,
            VendorNeed("triton"),
            VendorNeed("torch/lib/libtorch_cuda", missing="this torch is built without CUDA"),
        ),
        source="a build of torch with CUDA, from pytorch.org, and its triton",
        works=_DEVICE_RUN,
        traps=("it takes all nodes that are left: name it last",),
        on_device=True,
    ),
    Vendor(
        "metal",
        "MetalBackend",
        "Metal",
        "graphics of Apple computers, by AOTInductor",
        "executorch.backends.apple.metal.metal_partitioner:MetalPartitioner",
        f"{_M}devices:metal",
        needs=(_PACKAGE, VendorNeed(platform="darwin")),
        source="executorch and torchao on macOS with Apple silicon",
        works=_DEVICE_RUN,
        traps=("it takes all nodes that are left: name it last",),
        on_device=True,
    ),
    Vendor(
        "mlx",
        "MLXBackend",
        "MLX",
        "Apple silicon, by MLX",
        "executorch.backends.mlx.partitioner:MLXPartitioner",
        f"{_M}devices:mlx",
        needs=(
            _PACKAGE,
            VendorNeed(
                f"{_HOME}mlx/serialization/mlx_graph_schema",
                missing=f"{_NO_WHEEL}: its generated files are missing",
            ),
        ),
        source="build executorch with the MLX backend on macOS",
        listed=("mlx/ops.py", ""),
        works=_DEVICE_RUN,
        on_device=True,
    ),
    Vendor(
        "coreai",
        "CoreAIBackend",
        "Core AI",
        "Apple devices, by Core AI",
        "executorch.backends.apple.coreai.partition.partitioner:CoreAIPartitioner",
        f"{_M}devices:coreai",
        also=("core-ai",),
        needs=(_PACKAGE, VendorNeed("coreai_torch")),
        packages=("coreai-torch", "coreai-core"),
        works=_DEVICE_RUN,
        traps=("coreai-torch 0.4.3 of the package index is not that of executorch 1.5.1",),
        on_device=True,
    ),
)
_BY_NAME = {name.lower(): one for one in reversed(VENDORS) for name in one.names}


def vendor_called(name: str) -> Vendor | None:
    """Return the vendor of a name, None for none of the table."""
    return _BY_NAME.get(name.lower())


def vendors_of(backend_id: str) -> tuple[Vendor, ...]:
    """Return the vendors whose payloads have an id."""
    return tuple(one for one in VENDORS if backend_id and one.backend == backend_id)


def takes_whole_regions(backend_id: str) -> bool:
    """Return whether a backend takes what is quantized together whole, or not at all."""
    return any(one.whole_regions for one in vendors_of(backend_id))


def with_partitioner() -> tuple[Vendor, ...]:
    """Return the vendors that have a partitioner."""
    return tuple(one for one in VENDORS if one.place)


def with_flow() -> tuple[Vendor, ...]:
    """Return the vendors whose passes compile a whole program, without a partitioner."""
    return tuple(one for one in VENDORS if one.flow)


def with_quantizer() -> tuple[Vendor, ...]:
    """Return the vendors that have a quantizer."""
    return tuple(one for one in VENDORS if one.quantizer)


def unknown_vendor(name: str) -> str:
    """Return the error for a name that no vendor has."""
    known = [one.alias for one in VENDORS]
    close = difflib.get_close_matches(name.lower(), known, 1)
    hint = f"did you mean {close[0]}?" if close else f"available: {', '.join(known)}"
    return f"unknown backend {name!r}; {hint}"
