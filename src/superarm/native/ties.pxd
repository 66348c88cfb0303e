"""Ties: labels with equal scores are ranked at random, and sets keep their exact probability.

Ranks fall into groups: a label belongs to the group of the best one whose score is within ``near`` of
its own. Tied labels share their probability p evenly, and are put onto the ranks of their group in a
random order, from (seed, round); a group that goes on behind the last rank lends random ones of its
labels. Then a rule chooses ranks. The labels S are shown with probability

    sum over sets of ranks R of P(R) prod_g 1 / C(size_g, |S n g|)

where R must have as many ranks of every group g as S has labels of it. Here s[i] is the score of position i.
"""

from libc.stdint cimport int64_t, uint64_t

from superarm.native.randomness cimport uniform
from superarm.native.ranking cimport contains


cdef struct Ties:
    # Scratch space: the groups of tied labels, k + 1 places each.
    Py_ssize_t* group  # of each rank
    Py_ssize_t* size  # of each group, in labels
    float* low  # of each group: the least and the largest score
    float* high
    Py_ssize_t* wanted  # labels or ranks of each group, while sets are compared
    Py_ssize_t* place


cdef inline bint is_tied(const Ties* ties, Py_ssize_t g, float value) noexcept nogil:
    """Whether a score belongs to group g."""
    return ties.low[g] <= value and value <= ties.high[g]


cdef inline Py_ssize_t find_ties(Ties* ties, const float* s, Py_ssize_t n, const Py_ssize_t* order, Py_ssize_t ranks, float near) noexcept nogil:
    """Group the first ``ranks`` places of ``order`` (which has one more, if ranks < n): how many groups.

    As many groups as ranks, and none of them larger, means that there are no ties: then it returns 0.
    """
    cdef Py_ssize_t i, last, groups = 0
    cdef float value
    for i in range(ranks):
        value = s[order[i]]
        if i == 0 or value < ties.low[groups - 1]:
            ties.low[groups], ties.high[groups], ties.size[groups] = value - near, value, 0
            groups += 1
        ties.group[i] = groups - 1
        ties.size[groups - 1] += 1
    last = groups - 1
    if n > ranks and s[order[ranks]] >= ties.low[last]:
        ties.size[last] = 0
        for i in range(n):
            ties.size[last] += is_tied(ties, last, s[i])
    elif groups == ranks:
        return 0
    return groups


cdef inline void order_ties(Ties* ties, const float* s, Py_ssize_t n, Py_ssize_t* order, Py_ssize_t ranks, double* p, uint64_t seed, int64_t round, uint64_t draw) noexcept nogil:
    """Put tied labels into a random order, and share their p, with the uniforms from number ``draw`` on."""
    cdef Py_ssize_t g, i, at, place, size, held, stop, start = 0
    cdef double total
    while start < ranks:
        g, stop = ties.group[start], start + 1
        while stop < ranks and ties.group[stop] == g:
            stop += 1
        size, held = ties.size[g], stop - start
        if size > 1:
            total = 0.0
            if size > held:  # Floyd's way to some of its labels, by their numbers within the group
                for i in range(held):
                    at = <Py_ssize_t>(uniform(seed, <uint64_t>round, draw) * <double>(size - held + i + 1))
                    draw += 1
                    order[start + i] = at if not contains(order + start, i, at) else size - held + i
                at = 0
                for place in range(n):
                    if is_tied(ties, g, s[place]):
                        for i in range(start, stop):
                            if order[i] == at:
                                ties.place[i] = place
                        at += 1
                        total += p[place]
                for i in range(start, stop):
                    order[i] = ties.place[i]
                for place in range(n):
                    if is_tied(ties, g, s[place]):
                        p[place] = total / size
            else:
                for i in range(start, stop):
                    total += p[order[i]]
                for i in range(start, stop):
                    p[order[i]] = total / size
            for i in range(held - 1, 0, -1):  # Fisher and Yates
                at = <Py_ssize_t>(uniform(seed, <uint64_t>round, draw) * <double>(i + 1))
                draw += 1
                order[start + i], order[start + at] = order[start + at], order[start + i]
        start = stop


cdef inline bint count_groups(Ties* ties, Py_ssize_t groups, const float* s, const Py_ssize_t* drawn, Py_ssize_t m) noexcept nogil:
    """Count in ``wanted`` how many of these positions each group has; False if one is behind all ranks."""
    cdef Py_ssize_t g, i
    cdef float value
    for g in range(groups):
        ties.wanted[g] = 0
    for i in range(m):
        value, g = s[drawn[i]], 0
        while g < groups and not is_tied(ties, g, value):
            g += 1
        if g == groups:
            return False
        ties.wanted[g] += 1
    return True


cdef inline double way_to_choose(const Ties* ties, Py_ssize_t groups) noexcept nogil:
    """prod_g 1 / C(size_g, wanted_g): the probability of these labels, given how many of each group."""
    cdef Py_ssize_t g, i
    cdef double chance = 1.0
    for g in range(groups):
        for i in range(ties.wanted[g]):
            chance *= <double>(ties.wanted[g] - i) / <double>(ties.size[g] - i)
    return chance


cdef inline Py_ssize_t write_ties(const Ties* ties, Py_ssize_t groups, const float* s, const Py_ssize_t* eligible, Py_ssize_t n, const Py_ssize_t* order, Py_ssize_t ranks, double* draw_log, Py_ssize_t at) noexcept nogil:
    """Write the groups of ties down, from ``draw_log[at]`` on; where it ends.

    How many groups (0: no ties), the group of each rank, +1 or -1, how many labels follow, and these:
    the labels behind the ranks that are tied with the last one (+1), or if they are fewer, the others.
    """
    cdef Py_ssize_t i, behind, rest, last = groups - 1, first = ranks
    cdef bint inside
    draw_log[at] = groups
    if groups == 0:
        return at + 1
    for i in range(ranks - 1, -1, -1):
        draw_log[at + 1 + i] = ties.group[i]
        if ties.group[i] == last:
            first = i
    behind = ties.size[last] - (ranks - first)
    rest = n - ranks - behind
    inside = behind <= rest
    draw_log[at + 1 + ranks] = 1.0 if inside else -1.0
    draw_log[at + 2 + ranks] = behind if inside else rest
    at += 3 + ranks
    for i in range(n):
        if is_tied(ties, last, s[i]) == inside and not contains(order, ranks, i):
            draw_log[at] = eligible[i]
            at += 1
    return at
