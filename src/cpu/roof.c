#define _GNU_SOURCE
#include "cpu/roof.h"

#include "core/dtype.h"
#include "core/rng.h"
#include "core/threads.h"
#include "cpu/isa.h"

#include <time.h>

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

const char *roof_name(roof p)
{
    static const char *const names[ROOF_COUNT] = {"avx2 fma", "avx512 fma", "avx512 bf16 dot", "amx bf16 tile loop"};
    return names[p];
}

#ifdef __x86_64__
typedef struct tile_config {
    uint8_t palette, start_row, reserved[14];
    uint16_t bytes[16];
    uint8_t rows[16];
} tile_config;

/* Independent chains on registers, `steps` times. Written in assembly so that no compiler shortens them. */
#define CHAIN(op, reg, n) op " %%" reg "14, %%" reg "15, %%" reg #n "\n"
/* clang-format off */
#define CHAINS(op, reg)                                                                                    \
    CHAIN(op, reg, 0) CHAIN(op, reg, 1) CHAIN(op, reg, 2) CHAIN(op, reg, 3) CHAIN(op, reg, 4)              \
    CHAIN(op, reg, 5) CHAIN(op, reg, 6) CHAIN(op, reg, 7) CHAIN(op, reg, 8) CHAIN(op, reg, 9)              \
    CHAIN(op, reg, 10) CHAIN(op, reg, 11)
/* clang-format on */
#define CLOBBERS                                                                                                        \
    "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", \
        "xmm14", "xmm15"
#define FMA_LOOP(name, op, reg)                                                                        \
    static void name(long steps)                                                                       \
    {                                                                                                  \
        struct {                                                                                       \
            uint16_t v[64];                                                                            \
        } x; /* not constants: switching bits costs power, hence clock */                              \
        for (int i = 0; i < 64; i++)                                                                   \
            x.v[i] = f32_to_bf16(rng_normal_bits(rng_at(7, (uint64_t)i)));                             \
        __asm__ volatile("vmovups %0, %%" reg "14\n vmovups 64%0, %%" reg "15\n" ::"m"(x) : CLOBBERS); \
        for (long i = 0; i < steps; i++)                                                               \
            __asm__ volatile(CHAINS(op, reg)::: CLOBBERS);                                             \
        __asm__ volatile("vzeroupper" ::: CLOBBERS);                                                   \
    }
FMA_LOOP(loop_avx2, "vfmadd231ps", "ymm")
FMA_LOOP(loop_avx512, "vfmadd231ps", "zmm")
FMA_LOOP(loop_avx512_bf16, "vdpbf16ps", "zmm")

/* Four accumulators, two operands on each side: the inner step of a product, without its loads. */
static void loop_amx(long steps)
{
    _Alignas(64) uint16_t data[512];
    tile_config config = {.palette = 1};
    for (int i = 0; i < 512; i++) /* not zeros: switching bits costs power, hence clock */
        data[i] = f32_to_bf16(rng_normal_bits(rng_at(7, (uint64_t)i)));
    for (int i = 0; i < 8; i++) {
        config.bytes[i] = 64;
        config.rows[i] = 16;
    }
    __asm__ volatile("ldtilecfg %0" ::"m"(config));
    __asm__ volatile("tileloadd (%0,%1,1), %%tmm4\n tileloadd (%0,%1,1), %%tmm5\n tileloadd (%0,%1,1), %%tmm6\n tileloadd "
                     "(%0,%1,1), %%tmm7\n"
                     "tilezero %%tmm0\n tilezero %%tmm1\n tilezero %%tmm2\n tilezero %%tmm3\n" ::"r"(data),
                     "r"(64L)
                     : "memory");
    for (long i = 0; i < steps; i++)
        __asm__ volatile("tdpbf16ps %tmm6, %tmm4, %tmm0\n tdpbf16ps %tmm7, %tmm4, %tmm1\n"
                         "tdpbf16ps %tmm6, %tmm5, %tmm2\n tdpbf16ps %tmm7, %tmm5, %tmm3\n");
    __asm__ volatile("tilerelease");
}

typedef struct peak_loop {
    void (*run)(long steps);
    int isa;
    long steps;
    double flops; /* of a step */
} peak_loop;
static const peak_loop peaks[ROOF_COUNT] = {
    {loop_avx2, ISA_AVX2, 600000, 12 * 8 * 2},
    {loop_avx512, ISA_AVX512, 600000, 12 * 16 * 2},
    {loop_avx512_bf16, ISA_AVX512, 300000, 12 * 32 * 2},
    {loop_amx, ISA_AMX, 60000, 4.0 * 16 * 16 * 32 * 2},
};

static double peak_once(const peak_loop *p, int threads)
{
    double start = 0, end = 0;
#pragma omp parallel num_threads(threads)
    {
        p->run(p->steps / 20);
#pragma omp barrier
#pragma omp master
        start = now();
        p->run(p->steps);
#pragma omp barrier
#pragma omp master
        end = now();
    }
    return threads * (double)p->steps * p->flops / (end - start) * 1e-9;
}

double roof_gflops(roof p, int isa, int threads)
{
    double best = 0;
    if (isa < peaks[p].isa)
        return 0;
    for (int i = 0; i < 4; i++) {
        double g = peak_once(&peaks[p], threads);
        best = g > best ? g : best;
    }
    return best;
}
#else
double roof_gflops(roof p, int isa, int threads)
{
    (void)p, (void)isa, (void)threads;
    return 0;
}
#endif

enum { READ_BLOCK = 1 << 17 };

/* Loads every byte of a block, prefetching `ahead` bytes in front; `ahead` 0 leaves it to the hardware. */
#ifdef __x86_64__
static void read_block_avx2(const char *p, int64_t ahead)
{
    const char *end = p + READ_BLOCK;
    if (!ahead)
        for (; p < end; p += 256)
            __asm__ volatile(
                "vmovdqa (%0), %%ymm0\n vmovdqa 32(%0), %%ymm1\n vmovdqa 64(%0), %%ymm2\n vmovdqa 96(%0), %%ymm3\n"
                "vmovdqa 128(%0), %%ymm4\n vmovdqa 160(%0), %%ymm5\n vmovdqa 192(%0), %%ymm6\n vmovdqa 224(%0), %%ymm7\n" ::
                    "r"(p)
                : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "memory");
    else
        for (; p < end; p += 256)
            __asm__ volatile(
                "prefetcht0 (%0,%1)\n prefetcht0 64(%0,%1)\n prefetcht0 128(%0,%1)\n prefetcht0 192(%0,%1)\n"
                "vmovdqa (%0), %%ymm0\n vmovdqa 32(%0), %%ymm1\n vmovdqa 64(%0), %%ymm2\n vmovdqa 96(%0), %%ymm3\n"
                "vmovdqa 128(%0), %%ymm4\n vmovdqa 160(%0), %%ymm5\n vmovdqa 192(%0), %%ymm6\n vmovdqa 224(%0), %%ymm7\n" ::
                    "r"(p),
                "r"(ahead)
                : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "memory");
}
#endif

static void read_block(const char *p, int64_t ahead)
{
    const volatile uint64_t *v = (const volatile uint64_t *)p;
    (void)ahead;
    for (int64_t i = 0; i < READ_BLOCK / 8; i++)
        (void)v[i];
}

/* Threads take blocks in even contiguous shares, as kernels do. The best of several prefetch distances: a kernel may choose
 * its own, so the ceiling must too. */
double roof_read_bandwidth(const void *data, size_t bytes, int threads)
{
    static const int64_t distances[] = {0, 1024, 4096, 16384};
    const int64_t blocks = (int64_t)(bytes / READ_BLOCK);
    void (*read)(const char *, int64_t) = read_block;
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx2"))
        read = read_block_avx2;
#endif
    double best = 0;
    for (int pass = 0; pass < 8; pass++) {
        double start = now();
#pragma omp parallel for schedule(static) num_threads(threads)
        for (int64_t i = 0; i < blocks; i++)
            read((const char *)data + i * READ_BLOCK, distances[pass % 4]);
        double g = (double)blocks * READ_BLOCK / (now() - start) * 1e-9;
        best = g > best ? g : best;
    }
    return best;
}
