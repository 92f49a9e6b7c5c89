"""The work of operators of programs and recorded graphs: operator -> rule.

Names are without overload; a result given as an argument (``out``) changes nothing. Counts of
elementwise operators are those of their definition: sigmoid is negate, exp, add, divide.
"""

from __future__ import annotations

from inspector.roofline import rules as r
from inspector.roofline.work import Rule

_ELEMENTWISE = {
    1: """abs acos acosh add asin asinh atan atan2 atanh bitwise_and bitwise_left_shift bitwise_not
        bitwise_or bitwise_right_shift bitwise_xor ceil cos cosh div eq erf exp expm1 floor
        floor_divide fmod ge gt isinf isnan le log log10 log1p log2 logical_and logical_not
        logical_or logical_xor lt maximum minimum mul ne neg pow reciprocal relu remainder round
        rsqrt rsub sign sin sinh sqrt square sub tan tanh trunc erfc exp2 special_erf sgn
        true_divide threshold""",
    2: "clamp hardtanh leaky_relu prelu native_dropout clamp_min clamp_max relu6 dropout bernoulli",
    3: "addcmul addcdiv lerp softplus logit",
    4: "elu sigmoid hardsigmoid log_sigmoid_forward celu selu",
    5: "gelu silu hardswish glu mish",
}
_MOVED = """_to_copy alias_copy cat clone constant_pad_nd copy copy_ detach_copy expand_copy flip
    lift_fresh_copy masked_fill masked_scatter permute_copy pixel_shuffle pixel_unshuffle
    reflection_pad1d reflection_pad2d reflection_pad3d repeat repeat_interleave replication_pad1d
    replication_pad2d replication_pad3d resize roll select_scatter slice_scatter diagonal_scatter
    squeeze_copy stack t_copy transpose_copy tril triu unsqueeze_copy view_as_real_copy
    view_as_complex_copy view_copy where _conj_physical upsample_nearest1d upsample_nearest2d
    upsample_nearest3d channel_shuffle _unsafe_view_copy reshape_copy tile fill pad contiguous"""
_PARTS = """as_strided_copy diagonal_copy narrow_copy select_copy slice_copy split_copy
    split_with_sizes_copy unbind_copy unfold_copy"""
_MADE = """arange full full_like ones ones_like rand rand_like randn randn_like randperm
    scalar_tensor zeros zeros_like linspace eye tril_indices triu_indices"""
_NOTHING = """_local_scalar_dense alias as_strided detach diagonal empty empty_like empty_strided
    expand narrow permute select slice split split_with_sizes squeeze sym_is_contiguous sym_numel
    sym_size sym_storage_offset sym_stride t transpose unbind unfold unsqueeze view view_as_real
    view_as_complex _reshape_alias _assert_async _assert_scalar lift_fresh resize_"""
_VISITS_INPUT = "amax amin any all argmax argmin max min prod sum cumsum cumprod nonzero"
_ATTENTION = """scaled_dot_product_attention _scaled_dot_product_attention_math
    _scaled_dot_product_flash_attention _scaled_dot_product_flash_attention_for_cpu
    _scaled_dot_product_efficient_attention _scaled_dot_product_cudnn_attention"""

_ATEN: dict[str, Rule] = {
    **{
        name: r.elementwise(count)
        for count, names in _ELEMENTWISE.items()
        for name in names.split()
    },
    **dict.fromkeys(_MOVED.split(), r.copied),
    **dict.fromkeys(_PARTS.split(), r.part_read),
    **dict.fromkeys(_MADE.split(), r.written_only),
    **dict.fromkeys(_NOTHING.split(), r.no_work),
    **dict.fromkeys(_VISITS_INPUT.split(), r.reduction(1)),
    **dict.fromkeys(_ATTENTION.split(), r.attention),
    "mean": r.reduction(1, each_result=1),
    "logsumexp": r.reduction(4, each_result=2),
    "linalg_vector_norm": r.reduction(2, each_result=1),
    **dict.fromkeys(("var", "var_mean", "std"), r.reduction(4, each_result=1)),
    **dict.fromkeys(("_softmax", "_log_softmax", "softmax", "log_softmax"), r.of_input(5)),
    **dict.fromkeys(("mm", "bmm", "matmul", "mv", "dot", "_scaled_mm"), r.matmul(0)),
    **dict.fromkeys(("addmm", "baddbmm", "addmv"), r.matmul(1)),
    "linear": r.matmul(0),
    **dict.fromkeys(("convolution", "_convolution"), r.convolution),
    "convolution_backward": r.convolution_backward,
    **dict.fromkeys(
        ("avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool2d_with_indices"), r.pooling
    ),
    **dict.fromkeys(("max_pool3d_with_indices", "max_pool2d", "max_pool3d"), r.pooling),
    "avg_pool2d_backward": r.pooling_backward,
    "max_pool2d_with_indices_backward": r.of_input(1),
    **dict.fromkeys(
        ("_adaptive_avg_pool2d", "_adaptive_avg_pool3d", "adaptive_avg_pool1d"),
        r.reduction(1, each_result=1),
    ),
    "_adaptive_avg_pool2d_backward": r.elementwise(1),
    **dict.fromkeys(("native_layer_norm", "layer_norm"), r.normalization((2, 3))),
    **dict.fromkeys(("native_group_norm", "group_norm"), r.normalization((1, 2))),
    # a scale and an offset of each channel; statistics of the batch are four more
    "_native_batch_norm_legit_no_training": r.of_input(2),
    **dict.fromkeys(("_native_batch_norm_legit", "native_batch_norm"), r.of_input(7)),
    # two sums over what the norm was of, and the gradients of weight and bias
    **dict.fromkeys(("native_layer_norm_backward", "native_group_norm_backward"), r.of_input(10)),
    **dict.fromkeys(("upsample_bilinear2d", "_upsample_bilinear2d_aa"), r.elementwise(7)),
    "upsample_linear1d": r.elementwise(3),
    "upsample_bicubic2d": r.elementwise(35),
    "grid_sampler_2d": r.sampled,
    "embedding": r.gathered(0, 1),
    "index": r.gathered(0, 1),
    **dict.fromkeys(("gather", "index_select"), r.gathered(0, 2)),
    "masked_select": r.part_read,
    "embedding_dense_backward": r.of_input(1),
    "_embedding_bag": r.bags,
    **dict.fromkeys(("scatter", "index_copy"), r.scattered(3)),
    "scatter_add": r.scattered(3, 1),
    "scatter_reduce": r.scattered(3, 1),
    "index_add": r.scattered(3, 1),
    "index_put": r.scattered(2),
    "index_put_": r.scattered(2, in_place=True),
    "col2im": r.of_input(1),
    "im2col": r.copied,
    **dict.fromkeys(("sort", "topk"), r.sorting),
    **dict.fromkeys(("_cdist_forward", "_pdist_forward"), r.distances),
    **dict.fromkeys(("_fft_r2c", "_fft_c2r"), r.fourier),
}

_QUANTIZED = {
    # multiply, round, add the zero point, clamp
    **dict.fromkeys(
        (
            "quantize_per_tensor",
            "quantize_per_channel",
            "quantize_per_token",
            "quantize_per_channel_group",
        ),
        r.elementwise(4),
    ),
    # subtract the zero point, multiply
    **dict.fromkeys(
        (
            "dequantize_per_tensor",
            "dequantize_per_channel",
            "dequantize_per_token",
            "dequantize_per_channel_group",
        ),
        r.elementwise(2),
    ),
    # smallest and largest
    **dict.fromkeys(
        ("choose_qparams", "choose_qparams_per_token_asymmetric", "_choose_qparams_per_token"),
        r.of_input(2),
    ),
    "embedding_byte": r.gathered(0, 4),
    "embedding_4bit": r.gathered(0, 4),
    "embedding_2bit": r.gathered(0, 4),
}

RULES: dict[str, Rule] = {
    **{f"aten::{name}": rule for name, rule in _ATEN.items()},
    **{f"quantized_decomposed::{name}": rule for name, rule in _QUANTIZED.items()},
    "torchao::quantize_affine": r.elementwise(4),
    "torchao::dequantize_affine": r.elementwise(2),
    "torchao::choose_qparams_affine": r.of_input(2),
    "dim_order_ops::_clone_dim_order": r.copied,
    "dim_order_ops::_to_dim_order_copy": r.copied,
    "dim_order_ops::_empty_dim_order": r.no_work,
    "executorch_prim::et_copy_index": r.first_stored,
    "llama::update_cache": r.first_stored,
}
