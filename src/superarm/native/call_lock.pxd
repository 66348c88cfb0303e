cdef class CallLock:
    cdef object lock  # a threading.RLock
    cdef object pid  # of its process
    cdef Py_ssize_t depth  # how many calls are inside of each other; 0 if none is at work
