"""Texts as sparse rows: words, pairs of words and parts of words, hashed.

A word is a run of letters, digits and combining marks (an apostrophe inside belongs to it); in scripts without spaces,
and for emoji, it is one character. Beside each word stand the pair that it makes with the word before, and its parts
of four letters, its two ends counted as letters. Everything is hashed with the seed of its column, to one of ``width``
places; a place has the square root of the number of times that it was hit.

Texts come in lower case and in one normal form (data/cells.py); what is hashed here is code points.
"""

from cpython.unicode cimport PyUnicode_DATA, PyUnicode_GET_LENGTH, PyUnicode_KIND, PyUnicode_READ
from libc.math cimport sqrtf
from libc.stdint cimport int32_t, uint64_t
from libc.stdlib cimport qsort

import numpy as np

from superarm.native.arrays cimport GrowingArray
from superarm.native.ranking cimport insert_sorted

cdef enum:
    PART_LETTERS = 4  # letters of a part of a word
    MAX_INSERTION_SORT = 96  # places that are sorted by insertion

cdef uint64_t PAIRED = 0x9E3779B97F4A7C15ULL
cdef uint64_t PART_OF = 0xC2B2AE3D27D4EB4FULL


cdef inline int32_t place(uint64_t h, uint64_t mask) noexcept nogil:
    """Return the place of a hash, once its bits are mixed."""
    h ^= h >> 33
    h *= 0xFF51AFD7ED558CCDULL
    h ^= h >> 33
    h *= 0xC4CEB9FE1A85EC53ULL
    return <int32_t>((h ^ (h >> 33)) & mask)


cdef inline uint64_t with_letter(uint64_t h, Py_UCS4 letter) noexcept nogil:
    return (h ^ <uint64_t>letter) * 0x100000001B3ULL


cdef inline bint is_word(Py_UCS4 c) noexcept nogil:
    """Whether a character is a word: of a script without spaces, or an emoji."""
    if c < 0x0E00:
        return False
    return (
        0x0E00 <= c <= 0x0EFF or 0x1000 <= c <= 0x109F or 0x1780 <= c <= 0x17FF  # Thai, Lao, Burmese, Khmer
        or 0x3040 <= c <= 0x30FF or 0x3400 <= c <= 0x4DBF or 0x4E00 <= c <= 0x9FFF  # kana, Chinese characters
        or 0x2600 <= c <= 0x27BF or 0x2B00 <= c <= 0x2BFF  # signs
        or 0xF900 <= c <= 0xFAFF or 0x1F000 <= c <= 0x1FAFF or 0x20000 <= c <= 0x323AF
    )


cdef inline bint combines(Py_UCS4 c) noexcept nogil:
    """Whether a character that is no letter goes on with the word: marks on and between letters."""
    return (
        0x0300 <= c <= 0x036F or 0x0591 <= c <= 0x05C7 or 0x0610 <= c <= 0x061A or 0x064B <= c <= 0x065F
        or 0x0900 <= c <= 0x0DFF or 0x1AB0 <= c <= 0x1AFF or 0x1DC0 <= c <= 0x1DFF or c == 0x200C or c == 0x200D
    )


cdef int32_t place_of(uint64_t mask, uint64_t seed, str text) noexcept:
    """Return the place of the text as it is."""
    cdef Py_ssize_t i
    cdef uint64_t h = seed
    for i in range(PyUnicode_GET_LENGTH(text)):
        h = with_letter(h, PyUnicode_READ(PyUnicode_KIND(text), PyUnicode_DATA(text), i))
    return place(h, mask)


cdef Py_ssize_t write_places(int32_t* out, uint64_t mask, uint64_t seed, str text) noexcept:
    """Write the places of all words, pairs and parts: fewer than 4 a letter, as a letter has a part, a word three places
    more. Return how many these are."""
    cdef int kind = PyUnicode_KIND(text)
    cdef void* data = PyUnicode_DATA(text)
    cdef Py_ssize_t i = 0, j, start, added = 0, n = PyUnicode_GET_LENGTH(text)
    cdef Py_UCS4 c
    cdef uint64_t h, before = 0, part
    while i < n:
        c = PyUnicode_READ(kind, data, i)
        start = i
        h = seed
        if is_word(c):
            h = with_letter(h, c)
            i += 1
        else:
            while i < n:
                c = PyUnicode_READ(kind, data, i)
                if 97 <= c <= 122 or 48 <= c <= 57 or (
                    c >= 128 and not is_word(c) and (c.isalnum() or combines(c))
                ):
                    h = with_letter(h, c)
                elif c != 39 or i == start or i + 1 == n or not PyUnicode_READ(kind, data, i + 1).isalnum():
                    break
                else:
                    h = with_letter(h, c)
                i += 1
            if i == start:
                i += 1
                continue
        out[added] = place(h, mask)
        added += 1
        if before != 0:
            out[added] = place((before * PAIRED) ^ h, mask)
            added += 1
        before = h
        # its two ends count as letters
        for j in range(start, i + 3 - PART_LETTERS if i - start > 2 else start):
            part = seed ^ PART_OF
            part = with_letter(part, 32 if j == start else PyUnicode_READ(kind, data, j - 1))
            part = with_letter(part, PyUnicode_READ(kind, data, j))
            part = with_letter(part, PyUnicode_READ(kind, data, j + 1))
            part = with_letter(part, 32 if j + 2 == i else PyUnicode_READ(kind, data, j + 2))
            out[added] = place(part, mask)
            added += 1
    return added


cdef int by_place(const void* a, const void* b) noexcept nogil:
    cdef int32_t first = (<const int32_t*>a)[0], second = (<const int32_t*>b)[0]
    return (first > second) - (first < second)


cdef Py_ssize_t merge_equal(int32_t* places, float* values, Py_ssize_t n) noexcept nogil:
    """Sort the places, each once, with the root of how often it was hit. Return how many are left."""
    cdef Py_ssize_t i, end = 0
    if n > MAX_INSERTION_SORT:
        qsort(places, n, sizeof(int32_t), &by_place)
    else:
        for i in range(1, n):
            insert_sorted(places, i, places[i])
    for i in range(n):
        if end > 0 and places[end - 1] == places[i]:
            values[end - 1] += 1.0
        else:
            places[end], values[end] = places[i], 1.0
            end += 1
    for i in range(end):
        values[i] = sqrtf(values[i])
    return end


def hash_texts(columns, Py_ssize_t n, Py_ssize_t width):
    """The sparse rows of n rows with texts: indices, values and starts.

    Args:
        columns: (seed, whether a text is one word, n texts or ``None``) for each column.
        n: rows.
        width: places, a power of two.
    """
    cdef GrowingArray indices = GrowingArray(np.int32), values = GrowingArray(np.float32)
    cdef Py_ssize_t i, length
    cdef uint64_t mask = width - 1
    cdef int32_t* out
    if width < 1 or width & (width - 1) or width > 2**30:
        raise ValueError(f"width must be a power of two, got {width}")
    starts, columns = np.zeros(n + 1, np.int64), list(columns)
    for i in range(n):
        row = [(seed, one_word, texts[i]) for seed, one_word, texts in columns if texts[i] is not None]
        out, length = <int32_t*>indices.end(4 * sum([len(text) + 1 for _, _, text in row])), 0
        for seed, one_word, text in row:
            if one_word:
                out[length] = place_of(mask, seed, text)
                length += 1
            else:
                length += write_places(out + length, mask, seed, text)
        length = merge_equal(out, <float*>values.end(length), length)
        indices.used += length
        values.used += length
        starts[i + 1] = starts[i] + length
    return indices.numbers(), values.numbers(), starts
