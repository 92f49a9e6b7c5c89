"""torch.save files: tensors by layout and bytes, everything else by name, nothing executed."""

from __future__ import annotations

import json
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from schema.dtypes.scalar_type import BY_NAME
from schema.errors import FormatError
from schema.etrecord import Opaque, SavedTree, TensorData, decode, read_torch_save, tensors
from schema.etrecord.torch_file.pickle_machine import MAX_OPCODES
from tests.schema.etrecord_samples import (
    DATA,
    numbers,
    pickled,
    rebuilt,
    saved,
    storage,
    tensor_meta,
    text,
)

pytestmark = pytest.mark.slow

SIX = np.arange(6, dtype="<f4")
FLOAT = "torch.FloatStorage"


def read(data: bytes) -> SavedTree:
    return read_torch_save(memoryview(data), "sample")


def value(body: bytes, *storages: bytes) -> Any:
    return read(saved(pickled(body), *storages)).value


def only_tensor(body: bytes, *storages: bytes) -> TensorData:
    found = value(body, *storages)
    assert isinstance(found, TensorData)
    return found


def test_tensor_contiguous_is_a_view_of_its_storage() -> None:
    data = saved(pickled(rebuilt(FLOAT, (2, 3), (3, 1))), SIX.tobytes())
    found = read(data).value
    assert (found.sizes, found.strides, found.nbytes) == ((2, 3), (3, 1), 24)
    assert found.data.obj is data
    assert found.data.readonly
    assert found.is_contiguous
    np.testing.assert_array_equal(found.to_numpy(), SIX.reshape(2, 3))


def test_tensor_transposed_keeps_its_strides() -> None:
    found = only_tensor(rebuilt(FLOAT, (3, 2), (1, 3)), SIX.tobytes())
    assert not found.is_contiguous
    np.testing.assert_array_equal(found.to_numpy(), SIX.reshape(2, 3).T)


def test_tensor_with_offset_holds_only_its_own_bytes() -> None:
    found = only_tensor(rebuilt(FLOAT, (2,), (2,), offset=1), SIX.tobytes())
    assert found.storage_offset == 1
    assert found.data is not None
    assert len(found.data) == 12
    np.testing.assert_array_equal(found.to_numpy(), [1, 3])


def test_tensor_expanded_counts_every_element_but_stores_one() -> None:
    found = only_tensor(rebuilt(FLOAT, (1000,), (0,)), SIX.tobytes())
    assert (found.nbytes, len(found.data or b"")) == (4000, 4)


def test_tensor_empty_has_no_bytes_and_an_empty_value() -> None:
    found = only_tensor(rebuilt(FLOAT, (0, 5), (5, 1), count=0), b"")
    assert (found.nbytes, found.is_contiguous) == (0, True)
    assert found.to_numpy().shape == (0, 5)  # pyright: ignore[reportOptionalMemberAccess]


@pytest.mark.parametrize(
    ("sizes", "strides", "offset"), [((7,), (1,), 0), ((2,), (6,), 0), ((2,), (1,), 5)]
)
def test_tensor_leaving_its_storage_has_no_bytes_and_an_issue(
    sizes: tuple[int, ...], strides: tuple[int, ...], offset: int
) -> None:
    found = read(saved(pickled(rebuilt(FLOAT, sizes, strides, offset=offset)), SIX.tobytes()))
    assert found.value.data is None
    assert found.value.to_numpy() is None
    assert "needs 28 bytes" in found.issues[0].message


def test_tensor_whose_storage_is_missing_has_no_bytes_and_an_issue() -> None:
    found = read(saved(pickled(rebuilt(FLOAT, (2, 3), (3, 1)))))
    assert found.value.data is None
    assert "storage 0 are missing" in found.issues[0].message


def test_tensors_sharing_a_storage_name_it() -> None:
    body = b"]" + b"(" + rebuilt(FLOAT, (6,), (1,)) + rebuilt(FLOAT, (3,), (1,)) + b"e"
    found = value(body, SIX.tobytes())
    assert [tensor.storage_key for tensor in found] == ["0", "0"]


@pytest.mark.parametrize(
    ("sizes", "strides"), [((-1,), (1,)), ((2,), (-1,)), ((2, 3), (1,)), ((1 << 62,), (1,))]
)
def test_tensor_with_impossible_layout_is_opaque(
    sizes: tuple[int, ...], strides: tuple[int, ...]
) -> None:
    found = read(saved(pickled(rebuilt(FLOAT, sizes, strides)), SIX.tobytes()))
    assert found.value == Opaque("torch._utils._rebuild_tensor_v2")
    assert found.issues


STORAGES = {
    "Byte": ("uint8", [0, 255]),
    "Char": ("int8", [-1, 5]),
    "Short": ("int16", [-300, 2]),
    "Int": ("int32", [-70000, 2]),
    "Long": ("int64", [1 << 40, -2]),
    "Half": ("float16", [1.5, -2]),
    "Double": ("float64", [1e300, 0.1]),
    "ComplexFloat": ("complex64", [1 + 2j, -1j]),
    "ComplexDouble": ("complex128", [3j, 1.0]),
    "Bool": ("bool", [True, False]),
    "QInt8": ("qint8", [-5, 7]),
}


@pytest.mark.parametrize("name", STORAGES)
@pytest.mark.parametrize("order", [b"little", b"big"])
def test_tensor_of_each_storage_type_has_its_values(name: str, order: bytes) -> None:
    dtype, expected = STORAGES[name]
    kind = BY_NAME[dtype]
    raw = np.array(expected, kind.numpy)
    stored = raw.byteswap() if order == b"big" else raw
    body = pickled(rebuilt(f"torch.{name}Storage", (2,), (1,), count=2))
    found = read(saved(body, stored.tobytes(), order=order)).value
    assert (found.scalar_type, found.big_endian) == (kind.code, order == b"big")
    np.testing.assert_array_equal(found.to_numpy(), raw)


@pytest.mark.parametrize(
    ("dtype", "raw", "expected"),
    [
        ("float8_e4m3fn", b"\x38\xb8", [1.0, -1.0]),
        ("bfloat16", b"\x80\x3f\x00\xc0", [1.0, -2.0]),
        ("uint16", b"\xff\xff\x01\x00", [65535, 1]),
        ("uint64", b"\x01" + bytes(7) + b"\xff" * 8, [1, 2**64 - 1]),
    ],
)
def test_tensor_over_untyped_storage_has_the_type_named_beside_it(
    dtype: str, raw: bytes, expected: list[float]
) -> None:
    head = b"ctorch._utils\n_rebuild_tensor_v3\n("
    head += storage("torch.storage.UntypedStorage", "0", len(raw))
    tail = b"K\x00" + numbers(2) + numbers(1) + b"\x89Nctorch\n" + dtype.encode() + b"\ntR"
    found = only_tensor(head + tail, raw)
    assert found.dtype == dtype
    np.testing.assert_array_equal(found.to_numpy(), np.array(expected, found.to_numpy().dtype))  # pyright: ignore[reportOptionalMemberAccess]


def test_parameter_is_a_tensor_marked_as_one() -> None:
    inner = rebuilt(FLOAT, (6,), (1,))
    found = only_tensor(b"ctorch._utils\n_rebuild_parameter\n(" + inner + b"\x88NtR", SIX.tobytes())
    assert (found.is_parameter, found.requires_grad) == (True, True)


def test_quantized_tensor_shows_its_integers_and_says_so() -> None:
    head = b"ctorch._utils\n_rebuild_qtensor\n(" + storage("torch.QInt8Storage", "0", 2)
    body = head + b"K\x00" + numbers(2) + numbers(1) + b"(ctorch\nper_tensor_affine\nt\x89NtR"
    found = read(saved(pickled(body), b"\x01\xff"))
    np.testing.assert_array_equal(found.value.to_numpy(), [1, -1])
    assert "stored integers" in found.issues[0].message


def test_fake_tensor_has_a_layout_and_no_bytes() -> None:
    meta = json.dumps(tensor_meta(2, 3, dtype=13)).encode()
    reducer = b"cexecutorch.exir.serde.export_serialize\n_reconstruct_fake_tensor\n("
    encoded = b"c_codecs\nencode\n(" + text(meta.decode()) + text("latin1") + b"tR"
    found = read(saved(pickled(reducer + encoded + b"\x88tR")))
    assert found.value == TensorData(BY_NAME["bfloat16"].code, (2, 3), (3, 1), is_parameter=True)
    assert found.issues == ()


def test_meta_tensor_has_a_layout_and_no_bytes() -> None:
    head = b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat16\n"
    assert only_tensor(head + numbers(4) + numbers(1) + b"\x89tR").dtype == "float16"


def test_tensor_subclass_is_what_its_inner_factory_makes() -> None:
    inner = b"ctorch._utils\n_rebuild_tensor_v2\n(" + storage(FLOAT, "0", 6)
    inner = inner[inner.index(b"(") :] + b"K\x00" + numbers(6) + numbers(1) + b"\x89Nt"
    body = b"ctorch._tensor\n_rebuild_from_type_v2\n(ctorch._utils\n_rebuild_tensor_v2\n"
    found = only_tensor(body + b"cmine\nSubclass\n" + inner + b"NtR", SIX.tobytes())
    assert found.sizes == (6,)


def test_containers_keep_their_kind_and_order() -> None:
    body = b"(](K\x01Ne(" + b"\x88\x89t}(" + text("b") + b"G" + struct.pack(">d", 0.5)
    body += text("a") + text("é") + b"uctorch\nSize\n(" + numbers(2, 3) + b"tR"
    body += b"c__builtin__\ncomplex\n(K\x01K\x02tRt"
    found = value(body)
    assert found == ([1, None], (True, False), {"b": 0.5, "a": "é"}, (2, 3), 1 + 2j)
    assert list(found[2]) == ["b", "a"]


def test_ordered_dictionary_is_a_dictionary_without_its_state() -> None:
    body = b"ccollections\nOrderedDict\n)R(" + text("w") + b"K\x01u}" + text("_metadata") + b"Nsb"
    assert value(body) == {"w": 1}


def test_unknown_global_is_a_leaf_with_its_name_and_an_issue() -> None:
    found = read(saved(pickled(b"(cmine\nThing\n)RK\x05cmine\nOther\n" + b"t")))
    assert found.value == (Opaque("mine.Thing"), 5, Opaque("mine.Other"))
    assert ["mine.Thing" in issue.message for issue in found.issues] == [True]


MISFITS = [
    b"ctorch._utils\n_rebuild_tensor_v2\n(NtR",
    b"ctorch._utils\n_rebuild_tensor_v3\n(NtR",
    b"ctorch._utils\n_rebuild_parameter\n(NtR",
    b"ctorch._utils\n_rebuild_parameter\n)R",
    b"ctorch._utils\n_rebuild_meta_tensor_no_storage\n(ctorch\nfloat16\nNNtR",
    b"ctorch._tensor\n_rebuild_from_type_v2\n(NtR",
    b"cexecutorch.exir.serde.export_serialize\n_reconstruct_fake_tensor\n(K\x01tR",
    b"cexecutorch.exir.serde.export_serialize\n_reconstruct_fake_tensor\n(C\x02[]NtR",
    b"cexecutorch.exir.serde.export_serialize\n_reconstruct_fake_tensor\n(C\x02{}NtR",
    b"c_codecs\nencode\n(K\x01tR",
    b"ccollections\nOrderedDict\n(]tR",
    b"ctorch\nSize\n(NtR",
    b"ctorch\ndevice\n(NtR",
    b"cbuiltins\ncomplex\n(NtR",
    b"Nq\x00K\x01R",
    b"(K\x01tQ",
    b"(X\x07\x00\x00\x00storageNNNNtQ",
    b"Pname\n",
]


@pytest.mark.parametrize("body", MISFITS)
def test_factory_with_other_arguments_is_an_opaque_leaf(body: bytes) -> None:
    found = read(saved(pickled(body)))
    assert isinstance(found.value, Opaque)
    assert found.issues


def test_device_and_layout_are_texts() -> None:
    assert value(b"ctorch\ndevice\n(" + text("cpu") + b"tR") == "cpu"


def test_wrapper_subclass_has_a_layout_and_an_issue() -> None:
    head = b"ctorch._utils\n_rebuild_wrapper_subclass\n(cmine\nPacked\nctorch\nint8\n"
    found = read(saved(pickled(head + numbers(4, 2) + numbers(2, 1) + b"tR")))
    assert (found.value.sizes, found.value.dtype, found.value.data) == ((4, 2), "int8", None)
    assert "mine.Packed" in found.issues[0].message


def test_tensor_with_a_conjugate_bit_is_an_issue() -> None:
    body = rebuilt("torch.ComplexFloatStorage", (1,), (1,), count=1)[:-2]
    body += b"}(" + text("conj") + b"\x88utR"
    assert "conjugate" in read(saved(pickled(body), bytes(8))).issues[0].message


def test_tensor_of_packed_bits_has_bytes_but_no_values() -> None:
    found = only_tensor(rebuilt("torch.QUInt4x2Storage", (4,), (1,), count=4), b"1234")
    assert (bytes(found.data or b""), found.to_numpy()) == (b"1234", None)


def test_storage_shorter_than_announced_is_an_issue() -> None:
    found = read(saved(pickled(rebuilt(FLOAT, (2,), (1,))), bytes(8)))
    assert found.value.data is not None
    assert "8 bytes where 24" in found.issues[0].message


def test_opcodes_of_old_protocols_are_read() -> None:
    body = b"(I01\nI00\nI7\nL8L\nF0.5\nS'a'\nVb\n(lp0\nI1\nag0\n(dp1\nI2\nI3\nst."
    found = value(body[:-1])
    assert found == (True, False, 7, 8, 0.5, "a", "b", [1], [1], {2: 3})


def test_opcodes_that_drop_values_drop_them() -> None:
    body = b"(K\x01K\x020(0(K\x03K\x0412K\x05tK\x060"
    assert value(body) == (1, 1, 5)


PROTOCOL_4 = b"\x80\x04\x95" + bytes(8)


@pytest.mark.parametrize(
    "pickle",
    [
        b"cos\nsystem\n(S'touch %b'\ntR.",
        PROTOCOL_4 + b"\x8c\x02os\x94\x8c\x06system\x94\x93\x8c\x08touch %b\x85R.",
        b"(S'touch %b'\nios\nsystem\n.",
        b"(cos\nsystem\nS'touch %b'\no.",
        b"\x80\x02cbuiltins\neval\n(U\x08open(%b)tR.",
        b"\x80\x02cos\nsystem\n(U\x08touch %b\x81.",
        b"\x80\x02ctorch._tensor\n_rebuild_from_type_v2\n(cos\nsystem\nN(U\x08touch %bttR.",
    ],
)
def test_pickle_that_calls_something_calls_nothing(pickle: bytes, tmp_path: Path) -> None:
    target = tmp_path / "x"
    data = saved(pickle.replace(b"%b", str(target).encode()))
    try:
        found = read(data).value
    except FormatError:
        found = None
    assert not target.exists()
    assert found is None or isinstance(found, (Opaque, str, tuple))


@pytest.mark.parametrize(
    ("pickle", "reason"),
    [
        (b"", "the end of the pickle"),
        (b"\x80\x02N", "the end of the pickle"),
        (b"\x80\x02.", "an empty stack"),
        (b"\x80\x02\x82\x01.", "opcode 0x82"),  # extension registry
        (b"\x80\x02h\x07.", "KeyError"),
        (b"\x80\x02X\xff\xff\xff\x7f.", "inside an operand"),
        (b"\x80\x02\x8a\x40" + b"\xff" * 64 + b".", "more than 64 bits"),
        (b"L" + b"9" * 50 + b"L\n.", "more than 64 bits"),
        (b"\x80\x02}]Ns.", "dictionary key"),
        (b"\x80\x02}(K\x01u.", "ValueError"),
        (b"\x80\x02(.", "a mark"),
        (b"\x80\x02K\x01(.", "a mark"),
        (b"\x80\x02K\x01K\x02\x93.", "not a string"),
        (b"]" * (MAX_OPCODES + 1), "more"),
        (b"\x80\x02]q\x00h\x00a.", "a cycle"),
        (b"\x80\x02" + b"]" * 200 + b"a" * 199 + b".", "too many levels"),
    ],
)
def test_pickle_malformed_is_refused_in_one_sentence(pickle: bytes, reason: str) -> None:
    with pytest.raises(FormatError, match=reason) as caught:
        read(saved(pickle))
    assert caught.value.field.startswith("sample")


def test_pickle_that_refers_to_itself_a_million_times_is_refused() -> None:
    layers = b"]q\x00" + b"".join(b"](" + b"h%c" % i * 10 + b"eq%c" % (i + 1) for i in range(9))
    with pytest.raises(FormatError, match="at most 300000 items"):
        read(saved(pickled(layers)))


def test_pickle_that_copies_one_text_many_times_is_refused() -> None:
    encode = b"h\x01(h\x02h\x03tR"
    body = b"(c_codecs\nencode\nq\x01" + text("a" * 9000) + b"q\x02" + text("latin1") + b"q\x03"
    with pytest.raises(FormatError, match="byte strings that fit"):
        read(saved(pickled(body + encode * 500 + b"t")))


def test_file_empty_is_an_absent_datum() -> None:
    assert read(b"") == SavedTree(None, loaded=False)


@pytest.mark.parametrize("data", [pickled(b"N"), b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."])
def test_file_that_is_a_legacy_pickle_is_reported_and_not_loaded(data: bytes) -> None:
    found = read(data)
    assert (found.value, found.loaded) == (None, False)
    assert "legacy pickle, not loaded" in found.issues[0].message


@pytest.mark.parametrize("data", [b"?", b"some text", b"\x00" * 64, b"\xff\x80"])
def test_file_that_is_neither_archive_nor_pickle_is_refused(data: bytes) -> None:
    with pytest.raises(FormatError, match=r"a file of torch\.save"):
        read(data)


def test_file_without_pickle_is_refused() -> None:
    data = saved(b"N.").replace(b"data.pkl", b"data.pkx")
    with pytest.raises(FormatError, match=r"data\.pkl"):
        read(data)


def test_tree_walk_yields_tensors_in_order() -> None:
    one, two = rebuilt(FLOAT, (1,), (1,)), rebuilt(FLOAT, (2,), (1,))
    body = b"(](" + one + b"e}(" + text("k") + two + b"ut"
    assert [found.sizes for found in tensors(value(body, SIX.tobytes()))] == [(1,), (2,)]


def test_corpus_weights_are_views_of_the_record() -> None:
    data = (DATA / "corpus/v1.5.1/convnet_portable/model.etrecord").read_bytes()
    weights = decode(data).state_dict("exported_program")
    assert weights["stem.0.weight"].sizes == (8, 3, 3, 3)
    assert all(found.data is not None and found.data.obj is data for found in weights.values())
