/* roofline: hand-tuned flow metering over an mmap'ed classic pcap: a practical
 * upper bound against which flow meters are compared.
 *
 * build:  gcc -O3 -march=native -pthread -o roofline roofline.c
 * usage:  roofline [-m flow|parse|scan] [-b] [-t LOG2] [-T LOG2] [-j THREADS] [-P] [-r REPEAT] file.pcap
 *   -m scan   walk the record chain and touch each Ethernet/IP header, nothing else
 *   -m parse  scan + classify + build 5-tuple keys + hash, no table
 *   -m flow   (default) + table update: packets, bytes, first and last timestamp per flow
 *   -c        compact IPv4 table: 32 B per entry (32-bit packet counter, 48-bit byte counter, times as
 *             32-bit us offsets), grown in place inside one reserved region, so that a run touches
 *             far less fresh memory; directed flows, one thread, IPv4 only (IPv6 unchanged)
 *   -b        bidirectional flows (canonical key, counters per direction)
 *   -t LOG2   initial IPv4 table size (slots of 64 B); default 16, doubling at load 0.4
 *   -T LOG2   the same for IPv6
 *   -j 2      split the file in byte ranges (resynchronised on record headers), one private
 *             table per thread, merged at the end (merge is inside the timed part)
 *   -P        pre-fault the table (only useful with -t): steady-state speed, page zeroing excluded
 * Flows are 5-tuples (addresses, ports, protocol) for TCP and UDP over IPv4/IPv6, with 0..2
 * VLAN tags; other packets and non-first fragments are counted as "other".  No timeouts.
 * Reported: t_map (open+mmap+populate) and t_run (everything after), Mpps from t_run.
 * Native-endian microsecond or nanosecond pcap only.
 */
#define _GNU_SOURCE
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <immintrin.h>

typedef uint64_t u64; typedef uint32_t u32; typedef uint16_t u16; typedef uint8_t u8;
#define INL static inline __attribute__((always_inline))
INL u64 ld64(const u8 *p) { u64 v; memcpy(&v, p, 8); return v; }
INL u32 ld32(const u8 *p) { u32 v; memcpy(&v, p, 4); return v; }
INL u16 ld16(const u8 *p) { u16 v; memcpy(&v, p, 2); return v; }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }

typedef struct { u64 k0, k1, pkts, bytes, first, last, rpkts, rbytes; } e4;      /* 64 B; k1 == 0: empty   */
typedef struct { u64 k0, k1, k2, k3, k4, pkts, bytes, last; } e6;                 /* 64 B; k4 == 0: empty   */
typedef struct { u64 first, rpkts, rbytes; } c6;                                  /* cold part of e6        */
typedef struct { u64 k0; u32 ports, pkts; u64 bp; u32 first, last; } ec;           /* 32 B; bp == 0: empty; bp = tag<<48 | bytes */
#define CTAIL 65536                                                               /* probe overflow area, no wrap-around */
typedef struct { ec *tc; u64 mc, nc, limc, base; e4 *t4; u64 m4, n4, lim4; e6 *t6; c6 *x6; u64 m6, n6, lim6; u64 pkts, bytes, other; u32 chk; int pre; } tab;
#define OCC (1ull << 40)

static void *big(size_t n, int pre) {
    size_t a = 2u << 20; n = (n + a - 1) & ~(a - 1);
    u8 *p = mmap(0, n + a, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (p == MAP_FAILED) { perror("mmap table"); exit(1); }
    u8 *q = (u8 *)(((uintptr_t)p + a - 1) & ~(uintptr_t)(a - 1));
    madvise(q, n, MADV_HUGEPAGE);
    if (pre) for (size_t i = 0; i < n; i += 4096) *(volatile u8 *)(q + i) = 0;
    return q;
}
INL u32 h4(u64 a, u64 b) { return (u32)_mm_crc32_u64(_mm_crc32_u64(0x9e3779b9, a), b); }
INL u32 h6(u64 a, u64 b, u64 c, u64 d, u64 e) {
    u64 x = _mm_crc32_u64(_mm_crc32_u64(0x9e3779b9, a), b), y = _mm_crc32_u64(_mm_crc32_u64(0x85ebca6b, c), d);
    return (u32)_mm_crc32_u64(x ^ (y << 1), e);
}
static void alloc4(tab *T, u64 n) { T->t4 = big(n * sizeof(e4), T->pre); T->m4 = n - 1; T->lim4 = n * 2 / 5; }
static void alloc6(tab *T, u64 n) { T->t6 = big(n * sizeof(e6), T->pre); T->x6 = big(n * sizeof(c6), T->pre); T->m6 = n - 1; T->lim6 = n * 2 / 5; }
static __attribute__((noinline)) void grow4(tab *T) {
    e4 *o = T->t4; u64 n = T->m4 + 1; alloc4(T, n * 2);
    for (u64 i = 0; i < n; i++) if (o[i].k1) { u64 s = h4(o[i].k0, o[i].k1) & T->m4; while (T->t4[s].k1) s = (s + 1) & T->m4; T->t4[s] = o[i]; }
    munmap(o, n * sizeof(e4));
}
static __attribute__((noinline)) void grow6(tab *T) {
    e6 *o = T->t6; c6 *x = T->x6; u64 n = T->m6 + 1; alloc6(T, n * 2);
    for (u64 i = 0; i < n; i++) if (o[i].k4) { u64 s = h6(o[i].k0, o[i].k1, o[i].k2, o[i].k3, o[i].k4) & T->m6; while (T->t6[s].k4) s = (s + 1) & T->m6; T->t6[s] = o[i]; T->x6[s] = x[i]; }
    munmap(o, n * sizeof(e6)); munmap(x, n * sizeof(c6));
}
static void allocc(tab *T, u64 n) { size_t z = (1ull << 32) + CTAIL * sizeof(ec); int pre = T->pre; T->tc = big(z, 0); if (pre) memset(T->tc, 0, n * sizeof(ec)); T->mc = n - 1; T->limc = n / 2; }
INL void putc_(tab *T, ec v) { u64 s = h4(v.k0, v.ports | (v.bp >> 48) << 32 | OCC) & T->mc; while (T->tc[s].bp) s++; T->tc[s] = v; }
/* double in place: an entry moves to its home or to home+n; entries in the overflow tail go last */
static __attribute__((noinline)) void growc(tab *T) {
    u64 n = T->mc + 1, nt = 0; ec *t = malloc(CTAIL * sizeof(ec));
    if (n * 2 * sizeof(ec) > (1ull << 32)) { fprintf(stderr, "compact table full\n"); exit(1); }
    for (u64 i = n; i < n + CTAIL && T->tc[i].bp; i++) { t[nt++] = T->tc[i]; T->tc[i].bp = 0; }
    T->mc = 2 * n - 1; T->limc = n;
    for (u64 i = 0; i < n; i++) if (T->tc[i].bp) { ec v = T->tc[i]; T->tc[i].bp = 0; putc_(T, v); }
    for (u64 i = 0; i < nt; i++) putc_(T, t[i]);
    free(t);
}
INL void upc(tab *T, u64 k0, u64 k1, u32 h, u64 len, u64 ts) {
    u64 tag = (u8)(k1 >> 32); u32 us = (u32)((ts >> 32) * 1000000 + (u32)ts - T->base);
    for (ec *e = T->tc + (h & T->mc);; e++) {
        if (__builtin_expect(e->k0 == k0 && e->ports == (u32)k1 && e->bp >> 48 == tag, 1)) { e->pkts++; e->bp += len; e->last = us; return; }
        if (e->bp == 0) { e->k0 = k0; e->ports = (u32)k1; e->pkts = 1; e->bp = tag << 48 | len; e->first = e->last = us; T->nc++; return; }
    }
}
INL void up4(tab *T, u64 k0, u64 k1, u32 h, u64 len, u64 ts, int rev) {
    u64 s = h & T->m4; e4 *e;
    for (;; s = (s + 1) & T->m4) {
        e = T->t4 + s;
        if (__builtin_expect(e->k1 == k1 && e->k0 == k0, 1)) break;
        if (e->k1 == 0) { e->k0 = k0; e->k1 = k1; e->first = ts; T->n4++; break; }
    }
    if (rev) { e->rpkts++; e->rbytes += len; } else { e->pkts++; e->bytes += len; }
    e->last = ts;
}
INL void up6(tab *T, const u64 *k, u64 k4, u32 h, u64 len, u64 ts, int rev) {
    u64 s = h & T->m6; e6 *e;
    for (;; s = (s + 1) & T->m6) {
        e = T->t6 + s;
        if (__builtin_expect(e->k4 == k4 && !((e->k0 ^ k[0]) | (e->k1 ^ k[1]) | (e->k2 ^ k[2]) | (e->k3 ^ k[3])), 1)) break;
        if (e->k4 == 0) { e->k0 = k[0]; e->k1 = k[1]; e->k2 = k[2]; e->k3 = k[3]; e->k4 = k4; T->x6[s].first = ts; T->n6++; break; }
    }
    if (rev) { T->x6[s].rpkts++; T->x6[s].rbytes += len; } else { e->pkts++; e->bytes += len; }
    e->last = ts;
}
INL u64 rot32(u64 x) { return (x << 32) | (x >> 32); }
/* canonical order for -b; returns 1 when swapped */
INL int canon4(u64 *k0, u64 *k1) {
    u64 a = *k0, p = (u32)*k1, ar = rot32(a), pr = (u32)(((u32)p << 16) | ((u32)p >> 16));
    int sw = a > ar || (a == ar && p > pr);
    *k0 = sw ? ar : a; *k1 = (*k1 & ~0xffffffffull) | (sw ? pr : p); return sw;
}
INL int canon6(u64 *k, u64 *k4) {
    int sw = k[0] != k[2] ? k[0] > k[2] : k[1] > k[3];
    if (sw) { u64 t = k[0]; k[0] = k[2]; k[2] = t; t = k[1]; k[1] = k[3]; k[3] = t; u32 p = (u32)*k4; *k4 = (*k4 & ~0xffffffffull) | ((p << 16) | (p >> 16)); }
    return sw;
}
/* anything the fast classifier did not take: VLAN, IP options, other protocols, short captures */
static __attribute__((noinline)) void slow(tab *T, const u8 *r, int bidir, int mode) {
    u32 cap = ld32(r + 8), len = ld32(r + 12); u64 ts = rot32(ld64(r)); const u8 *p = r + 16, *end = p + cap;
    if (cap < 14) goto other;
    u16 et = ld16(p + 12); p += 14;
    for (int i = 0; i < 2 && (et == 0x0081 || et == 0xa888); i++) { if (end - p < 4) goto other; et = ld16(p + 2); p += 4; }
    if (et == 0x0008) {
        if (end - p < 20 || p[0] >> 4 != 4) goto other;
        u32 hl = (p[0] & 15) * 4, pr = p[9];
        if (hl < 20 || end - p < hl + 4 || (pr != 6 && pr != 17) || (ld16(p + 6) & 0xff1f)) goto other;
        u64 k0 = ld64(p + 12), k1 = ld32(p + hl) | (u64)pr << 32 | OCC; int rev = bidir ? canon4(&k0, &k1) : 0; u32 h = h4(k0, k1);
        if (mode == 3) upc(T, k0, k1, h, len, ts); else if (mode == 2) up4(T, k0, k1, h, len, ts, rev); else T->chk ^= h;
        return;
    }
    if (et == 0xdd86) {
        if (end - p < 44 || p[0] >> 4 != 6 || (p[6] != 6 && p[6] != 17)) goto other;   /* no extension headers */
        u64 k[4] = { ld64(p + 8), ld64(p + 16), ld64(p + 24), ld64(p + 32) }, k4 = ld32(p + 40) | (u64)p[6] << 32 | OCC;
        int rev = bidir ? canon6(k, &k4) : 0; u32 h = h6(k[0], k[1], k[2], k[3], k4);
        if (mode >= 2) up6(T, k, k4, h, len, ts, rev); else T->chk ^= h;
        return;
    }
other: T->other++;
}
#define B 64
#define AHEAD 2048
INL void run_range(tab *T, const u8 *p, const u8 *stop, const u8 *eof, const int mode, const int bidir) {
    u64 pk = 0, by = 0; u32 chk = 0;
    if (mode == 0) {
        while (p < stop && eof - p >= 16) {
            u32 cap = ld32(p + 8); if ((u64)(eof - p) < 16ull + cap) break;
            _mm_prefetch((const char *)p + AHEAD, _MM_HINT_T0);
            by += ld32(p + 12); chk += ld32(p + 28) ^ p[39]; pk++; p += 16 + cap;
        }
        T->pkts = pk; T->bytes = by; T->chk = chk; return;
    }
    while (p < stop && eof - p >= 16) {
        const u8 *rec[B]; u8 i4[B + 1], i6[B + 1], is[B + 1]; u32 n = 0, n4 = 0, n6 = 0, ns = 0;
        u64 a0[B], a1[B], K6[B][4], a6[B]; u32 hh4[B], hh6[B]; u8 r4[B], r6[B];
        /* stage 0: walk and classify, branch-free */
        if (__builtin_expect(eof - p >= 16 + 96, 1)) {
            while (n < B && p < stop && eof - p >= 16 + 96) {     /* header bytes may be read beyond caplen, never beyond the file */
                u32 cap = ld32(p + 8), w = ld32(p + 28), pr4 = p[39], pr6 = p[36]; u16 fr = ld16(p + 36);
                if (__builtin_expect((u64)(eof - p) < 16ull + cap, 0)) { stop = p; break; }
                _mm_prefetch((const char *)p + AHEAD, _MM_HINT_T0);
                int v4 = ((w & 0xffffff) == 0x450008) & ((pr4 == 6) | (pr4 == 17)) & !(fr & 0xff1f) & (cap >= 38);
                int v6 = ((w & 0xf0ffff) == 0x60dd86) & ((pr6 == 6) | (pr6 == 17)) & (cap >= 58);
                rec[n] = p; by += ld32(p + 12);
                i4[n4] = n; n4 += v4; i6[n6] = n; n6 += v6; is[ns] = n; ns += !(v4 | v6);
                n++; p += 16 + cap;
            }
        } else {
            u32 cap = ld32(p + 8); if ((u64)(eof - p) < 16ull + cap) break;
            rec[0] = p; by += ld32(p + 12); is[ns++] = 0; n = 1; p += 16 + cap;
        }
        if (!n) continue;
        pk += n;
        /* stage 1: keys, hashes, prefetch */
        for (u32 j = 0; j < n4; j++) {
            const u8 *q = rec[i4[j]]; u64 k0 = ld64(q + 42), k1 = ld32(q + 50) | (u64)q[39] << 32 | OCC;
            if (bidir) r4[j] = canon4(&k0, &k1);
            u32 h = h4(k0, k1); a0[j] = k0; a1[j] = k1; hh4[j] = h;
            if (mode == 3) __builtin_prefetch(T->tc + (h & T->mc), 1, 3); else if (mode == 2) __builtin_prefetch(T->t4 + (h & T->m4), 1, 3); else chk ^= h;
        }
        for (u32 j = 0; j < n6; j++) {
            const u8 *q = rec[i6[j]]; u64 *k = K6[j]; k[0] = ld64(q + 38); k[1] = ld64(q + 46); k[2] = ld64(q + 54); k[3] = ld64(q + 62);
            u64 k4 = ld32(q + 70) | (u64)q[36] << 32 | OCC;
            if (bidir) r6[j] = canon6(k, &k4);
            u32 h = h6(k[0], k[1], k[2], k[3], k4); a6[j] = k4; hh6[j] = h;
            if (mode >= 2) __builtin_prefetch(T->t6 + (h & T->m6), 1, 3); else chk ^= h;
        }
        /* stage 2: update */
        if (mode >= 2) {
            if (mode == 3) for (u32 j = 0; j < n4; j++) { const u8 *q = rec[i4[j]]; upc(T, a0[j], a1[j], hh4[j], ld32(q + 12), rot32(ld64(q))); }
            else for (u32 j = 0; j < n4; j++) { const u8 *q = rec[i4[j]]; up4(T, a0[j], a1[j], hh4[j], ld32(q + 12), rot32(ld64(q)), bidir ? r4[j] : 0); }
            for (u32 j = 0; j < n6; j++) { const u8 *q = rec[i6[j]]; up6(T, K6[j], a6[j], hh6[j], ld32(q + 12), rot32(ld64(q)), bidir ? r6[j] : 0); }
        }
        for (u32 j = 0; j < ns; j++) slow(T, rec[is[j]], bidir, mode);
        if (__builtin_expect(T->n4 > T->lim4, 0)) grow4(T);
        if (__builtin_expect(T->n6 > T->lim6, 0)) grow6(T);
        if (mode == 3 && __builtin_expect(T->nc > T->limc, 0)) growc(T);
    }
    T->pkts = pk; T->bytes = by; T->chk ^= chk;
}
typedef struct { tab T; const u8 *p, *stop, *eof; int mode, bidir, lg, pre; } job;
static void *work(void *v) {
    job *j = v; tab *T = &j->T; 
    if (j->mode == 0) run_range(T, j->p, j->stop, j->eof, 0, 0);
    else if (j->mode == 1) { if (j->bidir) run_range(T, j->p, j->stop, j->eof, 1, 1); else run_range(T, j->p, j->stop, j->eof, 1, 0); }
    else if (j->mode == 3) run_range(T, j->p, j->stop, j->eof, 3, 0);
    else { if (j->bidir) run_range(T, j->p, j->stop, j->eof, 2, 1); else run_range(T, j->p, j->stop, j->eof, 2, 0); }
    return 0;
}
static void merge(tab *A, tab *Z) {
    for (u64 i = 0; i <= Z->m4; i++) {
        if (i + 16 <= Z->m4 && Z->t4[i + 16].k1) __builtin_prefetch(A->t4 + (h4(Z->t4[i + 16].k0, Z->t4[i + 16].k1) & A->m4), 1, 3);
        e4 *z = Z->t4 + i; if (!z->k1) continue;
        u64 s = h4(z->k0, z->k1) & A->m4;
        for (;; s = (s + 1) & A->m4) {
            e4 *e = A->t4 + s;
            if (e->k1 == z->k1 && e->k0 == z->k0) { e->pkts += z->pkts; e->bytes += z->bytes; e->rpkts += z->rpkts; e->rbytes += z->rbytes; if (z->first < e->first) e->first = z->first; if (z->last > e->last) e->last = z->last; break; }
            if (!e->k1) { *e = *z; if (++A->n4 > A->lim4) grow4(A); break; }
        }
    }
    for (u64 i = 0; i <= Z->m6; i++) {
        e6 *z = Z->t6 + i; if (!z->k4) continue;
        u64 s = h6(z->k0, z->k1, z->k2, z->k3, z->k4) & A->m6;
        for (;; s = (s + 1) & A->m6) {
            e6 *e = A->t6 + s;
            if (e->k4 == z->k4 && e->k0 == z->k0 && e->k1 == z->k1 && e->k2 == z->k2 && e->k3 == z->k3) { e->pkts += z->pkts; e->bytes += z->bytes; A->x6[s].rpkts += Z->x6[i].rpkts; A->x6[s].rbytes += Z->x6[i].rbytes; if (Z->x6[i].first < A->x6[s].first) A->x6[s].first = Z->x6[i].first; if (z->last > e->last) e->last = z->last; break; }
            if (!e->k4) { *e = *z; A->x6[s] = Z->x6[i]; if (++A->n6 > A->lim6) grow6(A); break; }
        }
    }
    A->pkts += Z->pkts; A->bytes += Z->bytes; A->other += Z->other; A->chk ^= Z->chk;
}
/* first offset >= p at which 32 consecutive plausible records start */
static const u8 *resync(const u8 *p, const u8 *eof, u32 snap, u32 sec0) {
    for (; p < eof; p++) {
        const u8 *q = p; int k; u32 prev = 0;
        for (k = 0; k < 32 && eof - q >= 16; k++) {
            u32 s = ld32(q), f = ld32(q + 4), c = ld32(q + 8), l = ld32(q + 12);
            if (c > snap || c > l || l > 262144 || c < 14 || f >= 1000000000u || s + 3600 < sec0 || s > sec0 + 864000 || (prev && (s + 2 < prev || s > prev + 600))) break;
            prev = s; q += 16 + c; if (q > eof) break;
        }
        if (k == 32 || (k && q == eof)) return p;
    }
    return eof;
}
int main(int argc, char **argv) {
    int mode = 2, bidir = 0, lg = 16, lg6 = 16, nt = 1, pre = 0, rep = 1, c;
    while ((c = getopt(argc, argv, "m:bct:T:j:Pr:")) != -1) switch (c) {
        case 'm': mode = optarg[0] == 's' ? 0 : optarg[0] == 'p' ? 1 : 2; break; case 'b': bidir = 1; break; case 'c': mode = 3; break;
        case 't': lg = atoi(optarg); break; case 'T': lg6 = atoi(optarg); break; case 'j': nt = atoi(optarg); break; case 'P': pre = 1; break; case 'r': rep = atoi(optarg); break; default: return 2; }
    if (mode == 3) { nt = 1; bidir = 0; }
    if (optind >= argc || nt < 1 || nt > 64) { fprintf(stderr, "see the head of roofline.c\n"); return 2; }
    double t0 = now();
    int fd = open(argv[optind], O_RDONLY); struct stat st; if (fd < 0 || fstat(fd, &st)) { perror(argv[optind]); return 1; }
    size_t n = st.st_size; if (n < 24) return 1;
    const u8 *f = mmap(0, n, PROT_READ, MAP_PRIVATE | MAP_POPULATE, fd, 0); if (f == MAP_FAILED) { perror("mmap"); return 1; }
    madvise((void *)f, n, MADV_SEQUENTIAL);
    u32 mg = ld32(f); if (mg != 0xa1b2c3d4 && mg != 0xa1b23c4d) { fprintf(stderr, "not a native-endian classic pcap\n"); return 1; }
    u32 snap = ld32(f + 16); if (snap == 0 || snap > 262144) snap = 262144;
    double t1 = now();
    for (int r = 0; r < rep; r++) {
        job J[64]; memset(J, 0, sizeof J[0] * nt);
        for (int i = 0; i < nt; i++) { job *j = J + i; j->mode = mode; j->bidir = bidir; j->eof = f + n; j->T.pre = pre; j->T.base = (u64)ld32(f + 24) * 1000000; if (mode == 3) allocc(&j->T, 1ull << lg); if (mode >= 2) { alloc4(&j->T, mode == 3 ? 64 : 1ull << lg); alloc6(&j->T, 1ull << lg6); } }
        if (pre) t1 = now(); 
        double ts = now();
        for (int i = 0; i < nt; i++) J[i].p = i ? resync(f + 24 + (n - 24) / nt * i, f + n, snap, ld32(f + 24)) : f + 24;
        for (int i = 0; i < nt; i++) J[i].stop = i + 1 < nt ? J[i + 1].p : f + n;
        pthread_t th[64];
        for (int i = 1; i < nt; i++) pthread_create(th + i, 0, work, J + i);
        work(J);
        for (int i = 1; i < nt; i++) pthread_join(th[i], 0);
        double tm = now();
        for (int i = 1; i < nt; i++) { if (mode >= 2) merge(&J[0].T, &J[i].T); else { J[0].T.pkts += J[i].T.pkts; J[0].T.bytes += J[i].T.bytes; J[0].T.chk ^= J[i].T.chk; J[0].T.other += J[i].T.other; } }
        double te = now(); tab *T = &J[0].T;
        u64 sp = 0, sb = 0;
        if (mode == 3) { for (u64 i = 0; i <= T->mc + CTAIL; i++) if (T->tc[i].bp) { sp += T->tc[i].pkts; sb += T->tc[i].bp & 0xffffffffffffull; } T->n4 = T->nc; }
        if (mode >= 2) { for (u64 i = 0; i <= T->m4; i++) { sp += T->t4[i].pkts + T->t4[i].rpkts; sb += T->t4[i].bytes + T->t4[i].rbytes; } for (u64 i = 0; i <= T->m6; i++) { sp += T->t6[i].pkts + T->x6[i].rpkts; sb += T->t6[i].bytes + T->x6[i].rbytes; } }
        printf("mode=%s bidir=%d threads=%d packets=%lu bytes=%lu flows=%lu v4=%lu v6=%lu other=%lu sum_pkts=%lu sum_bytes=%lu chk=%08x t_map=%.4f t_run=%.4f t_merge=%.4f Mpps=%.2f ns_per_pkt=%.2f\n",
               mode == 0 ? "scan" : mode == 1 ? "parse" : mode == 3 ? "flowc" : "flow", bidir, nt, T->pkts, T->bytes, T->n4 + T->n6, T->n4, T->n6, T->other, sp, sb, T->chk, t1 - t0, te - ts, te - tm, T->pkts / (te - ts) * 1e-6, (te - ts) / T->pkts * 1e9);
        if (mode >= 2 && r + 1 < rep) for (int i = 0; i < nt; i++) { if (mode == 3) munmap(J[i].T.tc, (1ull << 32) + CTAIL * sizeof(ec)); munmap(J[i].T.t4, (J[i].T.m4 + 1) * sizeof(e4)); munmap(J[i].T.t6, (J[i].T.m6 + 1) * sizeof(e6)); munmap(J[i].T.x6, (J[i].T.m6 + 1) * sizeof(c6)); }
    }
    fflush(stdout);
    return 0;
}
