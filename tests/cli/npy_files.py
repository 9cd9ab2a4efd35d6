# SPDX-License-Identifier: Apache-2.0
"""Makes valid and hostile .npy files byte by byte."""

import struct


def header(text, version=1, pad=True):
    """The bytes before the data: magic, version, length and text of the header."""
    raw = text if isinstance(text, bytes) else text.encode("latin-1")
    prefix = 10 if version == 1 else 12
    if pad:
        raw += b" " * (-(prefix + len(raw) + 1) % 64) + b"\n"
    length = struct.pack("<H" if version == 1 else "<I", len(raw))
    return b"\x93NUMPY" + bytes([version, 0]) + length + raw


def dictionary(descr="<f4", order="False", shape="(2, 3)"):
    return f"{{'descr': '{descr}', 'fortran_order': {order}, 'shape': {shape}, }}"


def file(data=b"\0" * 24, version=1, pad=True, **fields):
    return header(dictionary(**fields), version, pad) + data


# For each name: the bytes of the file, and text that the error message must contain.
HOSTILE = {
    "empty": (b"", "the file is empty"),
    "not_npy": (b"%PDF-1.4 this is no array", "not a NumPy file"),
    "no_zip": (b"PK\x03\x04 this is no archive", "archive is damaged or cut off"),
    "magic_only": (b"\x93NUMPY", "cut off inside its header"),
    "no_length": (b"\x93NUMPY\x01\x00", "cut off inside its header"),
    "half_length": (b"\x93NUMPY\x02\x00\x10\x00\x00", "cut off inside its header"),
    "version_0": (b"\x93NUMPY\x00\x00" + file()[8:], "version 0.0"),
    "version_4": (b"\x93NUMPY\x04\x00" + file()[8:], "version 4.0"),
    "version_1_1": (b"\x93NUMPY\x01\x01" + file()[8:], "version 1.1"),
    "huge_header": (b"\x93NUMPY\x02\x00\xff\xff\xff\xff{", "cut off inside its header"),
    "header_cut": (file()[:40], "cut off inside its header"),
    "no_dictionary": (header("42"), "'{' should be"),
    "blank_header": (header(""), "the header is cut off"),
    "unclosed_dictionary": (header("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)"),
                            "'}' should be"),
    "unclosed_string": (header("{'descr': '<f4"), "inside a string"),
    "unclosed_tuple": (header("{'descr': '<f4', 'shape': (2, 3"), "')' should be"),
    "escape": (header("{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2, 3), }"),
               "backslash"),
    "nothing_after_key": (header("{'descr'"), "':' should be"),
    "key_without_quotes": (header("{descr: '<f4'}"), "no string"),
    "missing_descr": (header("{'fortran_order': False, 'shape': (2, 3), }"), "lacks the key 'descr'"),
    "missing_order": (header("{'descr': '<f4', 'shape': (2, 3), }"), "lacks the key 'fortran_order'"),
    "missing_shape": (header("{'descr': '<f4', 'fortran_order': False, }"), "lacks the key 'shape'"),
    "duplicate_key": (header("{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, "
                             "'shape': (2, 3), }") + b"\0" * 24, "'descr' twice"),
    "unknown_key": (header("{'descr': '<f4', 'evil': True}"), "a key 'evil'"),
    "after_dictionary": (header(dictionary() + " import os") + b"\0" * 24, "goes on after"),
    "non_ascii": (header("{'descr': '<f4', 'f\xf6': 1}"), "the byte 0xf6"),
    "zero_byte": (header("{'descr': '<f4\0', "), "the byte 0x00"),
    "escape_sequence": (header("{'\x1b[2J': '<f4', "), "the byte 0x1b"),
    "order_number": (file(order="0"), "neither True nor False"),
    "negative": (file(shape="(-2, 3)"), "negative size"),
    "float_size": (file(shape="(2.0, 3)"), "not a tuple"),
    "shape_list": (file(shape="[2, 3]"), "'(' should be"),
    "shape_number": (file(shape="(6)"), "not a tuple"),
    "size_of_words": (file(shape="(two, 3)"), "not a tuple"),
    "size_past_63_bits": (file(shape="(9223372036854775808, 1)"), "fit in 63 bits"),
    "size_of_100_digits": (file(shape="(" + "9" * 100 + ", 1)"), "fit in 63 bits"),
    "product_past_63_bits": (file(shape="(4294967296, 4294967296)"), "fit in 63 bits"),
    "bytes_past_63_bits": (file(shape="(2305843009213693952, 1)"), "fit in 63 bits"),
    "bytes_wrap_to_small": (file(shape="(4611686018427387905, 4)"), "fit in 63 bits"),
    "no_data": (file(b""), "24 bytes, 0 are there"),
    "one_byte_short": (file(b"\0" * 23), "24 bytes, 23 are there"),
    "terabytes": (file(shape="(1000000, 1000000)"), "the file is cut off"),
    "big_endian": (file(descr=">f4"), "big-endian ('>f4')"),
    "big_endian_bytes": (file(descr=">V2"), "big-endian ('>V2')"),
    "bytes": (file(descr="|V3"), "type '|V3'"),
    "long_double": (file(descr="<f16"), "type '<f16'"),
    "integers": (file(descr="<i2"), "type '<i2'"),
    "long_complex": (file(descr="<c32"), "type '<c32'"),
    "objects": (file(descr="|O"), "type '|O'"),
    "long_type": (file(descr="<" + "f" * 500), "type '<fff"),
    "no_type": (file(descr=""), "type ''"),
    "records": (header("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (2, 3), }"),
                "records of several fields"),
    "scalar": (file(shape="()"), "0 dimensions"),
    "four_dimensions": (file(shape="(1, 2, 3, 1)"), "4 dimensions"),
}
