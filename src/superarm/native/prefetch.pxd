"""Hints to the processor that an address will soon be read."""

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define superarm_prefetch(address) __builtin_prefetch(address)
    #define superarm_prefetch_far(address) __builtin_prefetch(address, 0, 2)
    #else
    #define superarm_prefetch(address) ((void)0)
    #define superarm_prefetch_far(address) ((void)0)
    #endif
    """
    void superarm_prefetch(const void*) noexcept nogil
    # Into the second cache: the first has few requests open at a time, and the processor waits where there are more.
    void superarm_prefetch_far(const void*) noexcept nogil
