"""A hint to the processor that an address will soon be read."""

cdef extern from *:
    """
    #if defined(__GNUC__)
    #define superarm_prefetch(address) __builtin_prefetch(address)
    #else
    #define superarm_prefetch(address) ((void)0)
    #endif
    """
    void superarm_prefetch(const void*) noexcept nogil
