#define _GNU_SOURCE
#include "cpu/isa.h"

#include "core/status.h"

#include <stdlib.h>
#include <string.h>

static const char *const names[ISA_COUNT] = {"portable", "avx2", "avx512", "amx"};
const char *cpu_isa_name(cpu_isa isa) { return names[isa]; }

#ifdef __x86_64__
#include <cpuid.h>
#include <sys/syscall.h>
#include <unistd.h>

/* Which register states the operating system saves (XCR0). */
static uint64_t saved_states(void)
{
    uint32_t lo, hi;
    __asm__ volatile("xgetbv" : "=a"(lo), "=d"(hi) : "c"(0));
    return (uint64_t)hi << 32 | lo;
}

/* Linux grants the 8 KiB tile state per process on request (ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA). */
static bool request_tiles(void) { return syscall(SYS_arch_prctl, 0x1023, 18) == 0; }

static cpu_isa hardware_level(void)
{
    uint32_t a, b, c, d, leaf1_c;
    if (!__get_cpuid(1, &a, &b, &leaf1_c, &d) || !(leaf1_c & 1u << 27 /* OSXSAVE */))
        return ISA_PORTABLE;
    uint64_t states = saved_states();
    bool fma_f16c = (leaf1_c & 1u << 12) && (leaf1_c & 1u << 29);
    if (!__get_cpuid_count(7, 0, &a, &b, &c, &d) || !fma_f16c || !(b & 1u << 5) || (states & 6) != 6)
        return ISA_PORTABLE;
    uint32_t a1 = 0, b1, c1, d1;
    if (a < 1 || !__get_cpuid_count(7, 1, &a1, &b1, &c1, &d1))
        a1 = 0;
    const uint32_t avx512 = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; /* F, DQ, BW, VL */
    if ((b & avx512) != avx512 || !(a1 & 1u << 5) || (states & 0xe6) != 0xe6)
        return ISA_AVX2;
    const uint32_t amx = 1u << 22 | 1u << 24; /* BF16, TILE */
    if ((d & amx) != amx || (states & 0x60000) != 0x60000 || !request_tiles())
        return ISA_AVX512;
    return ISA_AMX;
}
const char *cpu_bf16_dot_is_slow(void)
{
    uint32_t a, b, c, d;
    const bool amd =
        __get_cpuid(0, &a, &b, &c, &d) && b == signature_AMD_ebx && c == signature_AMD_ecx && d == signature_AMD_edx;
    return amd ? NULL : "vdpbf16ps is slower than FP32 multiply-adds on this processor";
}
#else
const char *cpu_bf16_dot_is_slow(void) { return "no such instruction"; }
static cpu_isa hardware_level(void) { return ISA_PORTABLE; }
#endif

ink_status cpu_isa_detect(cpu_isa *out)
{
    cpu_isa have = hardware_level();
    const char *e = getenv("INK_CPU");
    *out = have;
    if (!e || !*e)
        return INK_OK;
    for (int i = 0; i < ISA_COUNT; i++)
        if (!strcmp(e, names[i])) {
            if (i > (int)have)
                return failure(INK_UNAVAILABLE, "INK_CPU=%s: this processor offers %s at most", e, names[have]);
            *out = (cpu_isa)i;
            return INK_OK;
        }
    return failure(INK_INVALID_ARGUMENT, "INK_CPU=%s: expected portable, avx2, avx512 or amx", e);
}
