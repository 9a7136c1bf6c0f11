/* rng.h - a counter-based generator: value i of stream (seed) is a pure function, the same on every machine and for
 * every order of evaluation. The mixer is the finaliser of SplitMix64 (Steele, Lea, Flood 2014) applied twice. */
#ifndef CORE_RNG_H
#define CORE_RNG_H
#include <stdint.h>

static inline uint64_t rng_mix(uint64_t z)
{
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return z ^ z >> 31;
}

/* 64 random bits for counter i of the stream `seed`. */
static inline uint64_t rng_at(uint64_t seed, uint64_t i)
{
    return rng_mix(rng_mix(seed + 0x9e3779b97f4a7c15u) ^ (i * 0x9e3779b97f4a7c15u + 0xd1b54a32d192ed03u));
}

/* A stream with its own position, for tests. */
typedef struct rng {
    uint64_t seed, next;
} rng;

static inline uint64_t rng_u64(rng *r) { return rng_at(r->seed, r->next++); }
static inline uint64_t rng_below(rng *r, uint64_t n) { return n ? rng_u64(r) % n : 0; }
static inline int64_t rng_range(rng *r, int64_t lo, int64_t hi)
{
    return lo + (int64_t)rng_below(r, (uint64_t)(hi - lo + 1));
}
static inline double rng_unit(rng *r) { return (double)(rng_u64(r) >> 11) * 0x1p-53; } /* [0, 1) */

/* About N(0,1) from exact integer arithmetic: the sum of four 16-bit uniforms of one draw, centred and scaled. */
static inline float rng_normal_bits(uint64_t u)
{
    int32_t s = (int32_t)((u & 0xffff) + (u >> 16 & 0xffff) + (u >> 32 & 0xffff) + (u >> 48)) - 131070;
    return (float)s * 2.642912e-5f; /* sqrt(3) / 65536 */
}
static inline float rng_normal(rng *r) { return rng_normal_bits(rng_u64(r)); }
#endif
