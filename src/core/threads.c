#define _GNU_SOURCE
#include "core/threads.h"

#include <sched.h>
#include <stdlib.h>

int threads_default(void)
{
#ifdef _OPENMP
    if (getenv("OMP_NUM_THREADS"))
        return omp_get_max_threads();
#endif
    cpu_set_t set;
    int n = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
    return n > 0 ? n : 1;
}
