/*
 * Intel RDT (CMT/MBM/CAT/CDP/MBA) of an emulated processor.  Configured by the
 * environment variable QEMU_RDT; absent => RDT not advertised at all.
 *   QEMU_RDT=cbm=12,share=0xc00,clos=16,mbaclos=8,rmid=32,scale=65536,way=1572864,
 *            cat=1,mba=1,cmt=1,mbm=1,cdp=1,noncont=0,width=0,rate=400,pmu=1,
 *            tied=0,steep=0,l2=0,l2clos=8
 * tied: ways of the L3 that a mask has all or none of; steep=1: delays of 20
 * and 30 become 10; l2: bits of the masks of each CPU's second-level cache.
 * pmu=1 adds architectural perfmon v2 (no overflow interrupts) so that
 * "pqos --iface=os -m" can open its perf events.
 *
 * obey=1 (with -icount, see rr_lockstep): what tasks with a CLOSID or RMID
 * read and write, and programs that asked for it (see JOIN),
 * goes through cache.c and takes guest time:
 *   hit=300,miss=1500    ns that an access to the L3, and one to memory, waits
 *   line=75              ns that the memory channel of a package needs for a line
 *   core=150             ns between two lines of one core; MBA makes them longer
 *   l2kb=16              each core's own cache
 *   policy=0             0: LRU, 1: protects lines that were used again
 *   victim=0             1: the L3 holds what the cores' own caches evict
 *   leak=0               one fill in so many ignores its mask
 *   ahead=0              lines that a miss brings in too, in any way
 *   device=0             lines a us that a device writes into the ways of `share`
 *   slack=0              a delay of up to so many per cent does nothing
 *   blind=0              ids from this one on have lost their counts
 *   truth=0              every so many us a row of what really happened is
 *                        written to the file that QEMU_RDT_TRUTH names
 * SPDX-License-Identifier: GPL-2.0-or-later
 */
#include "qemu/osdep.h"
#include <math.h>
#include "qemu/timer.h"
#include "qemu/thread.h"
#include "cpu.h"
#include "hw/i386/topology.h"
#include "exec/exec-all.h"
#include "exec/rr-lockstep.h"
#include "rdt.h"
#include "cache.h"

#define NMAX 256
#define PKGS 8
#define CPUS 64

typedef struct {
    uint64_t mask[NMAX], thrtl[NMAX];
    double occ[NMAX], tot[NMAX], loc[NMAX];
    uint64_t fault[NMAX][4];          /* by rmid, event id: bits 63/62 */
    uint64_t cdp;
    int64_t last;
} RDTPkg;

static struct {
    bool init, on;
    uint32_t cbm, share, clos, mbaclos, rmid, scale, way, cat, mba, cmt, mbm,
             cdp, noncont, width, rate, pmu, tied, steep, l2, l2clos, obey, hit,
             miss, line, core, l2kb, policy, victim, leak, ahead, device, slack,
             blind, truth;
    QemuMutex lock;
    RDTPkg pkg[PKGS];
    struct { CPUState *cs; int pkg; uint32_t rmid, clos; uint64_t evtsel, l2[NMAX]; } cpu[CPUS];
    uint64_t inject;
} R;

static void opt(const char *s, const char *k, uint32_t *v, uint32_t def)
{
    size_t n = strlen(k);
    *v = def;
    for (; s && *s; s = strchr(s, ','), s = s ? s + 1 : NULL) {
        if (!strncmp(s, k, n) && s[n] == '=') {
            *v = strtoul(s + n + 1, NULL, 0);
        }
    }
}

/*
 * A cache that obeys.  All CPUs run in one thread, the one that is behind first,
 * so nothing here is locked.  Requests come out of order by what a CPU waits
 * within one translated block, which can be 20 us: a channel is taken by the
 * microsecond, so that who is behind gets what was free then.
 */

#define US 1000
#define TAKEN 4096

static struct {
    Cache *cache;
    struct { int64_t us, ns; } taken[TAKEN];   /* of the memory channel: how much of which microsecond */
    int64_t devices;                  /* their writes are done up to this time */
    uint64_t next;                    /* line that they write */
} O[PKGS];

typedef struct { uint64_t hits, misses, read, written; } Seen;
static Seen of_owner[PKGS][NMAX];

static struct {
    bool modelled;
    uint64_t last;                    /* line that it missed last */
    int64_t waited;                   /* ns, of all time */
    uint64_t asked;                   /* lines, in user mode, of the L3 */
    Seen seen;
} M[CPUS];

static FILE *truth;
static int64_t idle;                  /* time in which no CPU ran, which rr_time does not have */

static int slot(CPUState *cs)
{
    return cs->cpu_index % CPUS;
}

static void obey_init(void)
{
    const char *file = getenv("QEMU_RDT_TRUTH");
    CacheShape shape = { R.way / 64, R.cbm, R.l2kb * 4, R.policy, R.victim, R.leak, R.ahead };
    for (int p = 0; p < PKGS; p++) {
        O[p].cache = cache_new(&shape);
    }
    if (R.truth && file) {
        truth = fopen(file, "w");
        fprintf(truth, "ns,kind,package,number,rmid,class,asked,hits,misses,read,written,value\n");
    }
}

bool rdt_obeys(void)
{
    return R.obey;
}

bool rdt_models(CPUState *cpu)
{
    return R.obey && M[slot(cpu)].modelled;
}

#define JOIN 0x52440001               /* subleaf of CPUID's leaf 0x10, by which a program asks */
#define LEAVE 0x52440000

static uint64_t asked[64];            /* page tables of these programs, and 0 elsewhere */

static uint64_t *place_of(uint64_t table)
{
    uint64_t *at = asked;
    while (at < asked + 63 && *at != table) {
        at++;
    }
    return at;
}

static uint64_t page_table(CPUX86State *env)
{
    return env->cr[3] & 0x000ffffffffff000ull;
}

void rdt_model(CPUX86State *env)
{
    int i = slot(env_cpu(env));
    bool now = R.cpu[i].rmid || R.cpu[i].clos || *place_of(page_table(env));
    if (R.obey && now != M[i].modelled) {
        M[i].modelled = now;
        tlb_flush(env_cpu(env));
    }
}

static uint32_t delay_of(RDTPkg *g, uint32_t clos)
{
    uint32_t asked = g->thrtl[clos];
    return asked <= R.slack ? 0 : asked;
}

/* When a package's memory channel begins to carry this, which is wanted at `now` and takes so many ns. */
static int64_t carried_from(int p, int64_t now, int64_t ns)
{
    int64_t begin = -1;
    for (int64_t us = now / US; begin < 0 || ns > 0; us++) {
        int64_t here, *taken = &O[p].taken[us % TAKEN].ns;
        if (O[p].taken[us % TAKEN].us != us) {
            O[p].taken[us % TAKEN].us = us;
            *taken = 0;
        }
        if (begin < 0 && *taken < US) {
            begin = MAX(now, us * US + *taken);
        }
        here = MIN(ns, US - *taken);
        *taken += here;
        ns -= here;
    }
    return begin;
}

/* What devices wrote since: into the ways that they share with programs, over 16 times their size. */
static void devices(int p, int64_t now)
{
    uint64_t around = 16ull * R.way / 64 * R.cbm;
    if (now - O[p].devices > 100000) {
        O[p].devices = now - 100000;
    }
    for (; O[p].devices < now; O[p].devices += 1000) {
        for (uint32_t k = 0; k < R.device; k++) {
            uint32_t written = cache_device(O[p].cache, (1ull << 40) + O[p].next++ % around, R.share);
            carried_from(p, O[p].devices, R.line * written);
        }
    }
}

void rdt_access(CPUState *cs, hwaddr at, bool write)
{
    int i = slot(cs), p = R.cpu[i].pkg;
    uint32_t clos = R.cpu[i].clos, rmid = R.cpu[i].rmid, delay;
    RDTPkg *g = &R.pkg[p];
    uint64_t line = at >> 6;
    int64_t now = rr_time(cs), start, end;
    CacheAccess a;
    Seen *both[] = { &M[i].seen, &of_owner[p][rmid] };

    if (R.device) {
        devices(p, now);
    }
    a = cache_access(O[p].cache, i, line, write, g->mask[g->cdp ? 2 * clos : clos], rmid);
    if (a.where == ACCESS_OWN) {
        return;
    }
    M[i].asked += (X86_CPU(cs)->env.hflags & HF_CPL_MASK) == 3;
    for (int k = 0; k < 2; k++) {
        both[k]->hits += a.where == ACCESS_HIT;
        both[k]->misses += a.where == ACCESS_MISS;
        both[k]->read += a.read;
        both[k]->written += a.written;
    }
    if (a.where == ACCESS_HIT) {
        carried_from(p, now, R.line * a.written);
        M[i].waited += R.hit;
        rr_wait(cs, R.hit, false);
        return;
    }
    start = carried_from(p, now, R.line * (a.read + a.written));
    delay = delay_of(g, clos);
    end = start + R.line + (line == M[i].last + 1 ? 0 : R.miss);   /* what follows on was begun ahead */
    end = MAX(end, start + R.core * 100 / (100 - MIN(delay, 99))); /* the core waits, and not the channel */
    M[i].last = line;
    M[i].waited += end - now;
    rr_wait(cs, end - now, true);
}

static double obeyed(int p, uint32_t rmid, uint32_t event)
{
    Seen *s = &of_owner[p][rmid];
    return 64.0 * (event == 1 ? cache_lines(O[p].cache, rmid) : s->read + s->written);
}

/* Called whenever all CPUs have come to this time. */
void rdt_tick(int64_t now, int64_t local)
{
    static int64_t next;
    idle = now - local;
    if (!truth || now < next) {
        return;
    }
    next = now + 1000ll * R.truth;
    for (int i = 0; i < CPUS; i++) {
        Seen *s = &M[i].seen;
        if (M[i].modelled) {
            fprintf(truth, "%" PRId64 ",cpu,%d,%d,%u,%u,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",\n",
                    now, R.cpu[i].pkg, i, R.cpu[i].rmid, R.cpu[i].clos, M[i].asked, s->hits, s->misses, s->read, s->written);
        }
    }
    for (int p = 0; p < PKGS; p++) {
        for (uint32_t r = 0; r < R.rmid; r++) {
            Seen *s = &of_owner[p][r];
            if (s->misses) {
                fprintf(truth, "%" PRId64 ",id,%d,%u,%u,,,%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRIu64 ",%" PRId64 "\n",
                        now, p, r, r, s->hits, s->misses, s->read, s->written, cache_lines(O[p].cache, r));
            }
        }
    }
    fflush(truth);
}

static void rdt_init(void)
{
    const char *s = getenv("QEMU_RDT");
    if (R.init) {
        return;
    }
    R.on = s != NULL;
    opt(s, "cbm", &R.cbm, 12);       opt(s, "share", &R.share, 0xc00);
    opt(s, "clos", &R.clos, 16);     opt(s, "mbaclos", &R.mbaclos, 8);
    opt(s, "rmid", &R.rmid, 32);     opt(s, "scale", &R.scale, 65536);
    opt(s, "way", &R.way, 1572864);  opt(s, "cat", &R.cat, 1);
    opt(s, "mba", &R.mba, 1);        opt(s, "cmt", &R.cmt, 1);
    opt(s, "mbm", &R.mbm, 1);        opt(s, "cdp", &R.cdp, 1);
    opt(s, "noncont", &R.noncont, 0); opt(s, "width", &R.width, 0);
    opt(s, "rate", &R.rate, 400);   opt(s, "pmu", &R.pmu, 1);
    opt(s, "tied", &R.tied, 0);     opt(s, "steep", &R.steep, 0);
    opt(s, "l2", &R.l2, 0);         opt(s, "l2clos", &R.l2clos, 8);
    opt(s, "obey", &R.obey, 0);     opt(s, "hit", &R.hit, 300);
    opt(s, "miss", &R.miss, 1500);  opt(s, "line", &R.line, 75);
    opt(s, "core", &R.core, 150);  opt(s, "l2kb", &R.l2kb, 16);
    opt(s, "policy", &R.policy, 0); opt(s, "victim", &R.victim, 0);
    opt(s, "leak", &R.leak, 0);     opt(s, "ahead", &R.ahead, 0);
    opt(s, "device", &R.device, 0); opt(s, "slack", &R.slack, 0);
    opt(s, "blind", &R.blind, 0);   opt(s, "truth", &R.truth, 0);
    qemu_mutex_init(&R.lock);
    for (int p = 0; p < PKGS; p++) {
        for (int i = 0; i < NMAX; i++) {
            R.pkg[p].mask[i] = (1ull << R.cbm) - 1;
        }
    }
    for (int i = 0; i < CPUS; i++) {
        for (int c = 0; c < NMAX; c++) {
            R.cpu[i].l2[c] = (1ull << R.l2) - 1;
        }
    }
    if (R.obey) {
        obey_init();
    }
    R.init = true;
}

void rdt_cpuid(CPUX86State *env, uint32_t index, uint32_t count,
               uint32_t *eax, uint32_t *ebx, uint32_t *ecx, uint32_t *edx)
{
    rdt_init();
    if (!R.on || env->cpuid_level < 0x10) {
        return;
    }
    if (index == 0x10 && (count == JOIN || count == LEAVE)) {
        uint64_t *at = place_of(page_table(env));
        at = *at ? at : place_of(0);
        *at = count == JOIN ? page_table(env) : 0;
        rdt_model(env);
        return;
    }
    switch (index) {
    case 4:
        if (count == 3) {             /* L3: one way per CBM bit */
            *ebx = ((R.cbm - 1) << 22) | 63;
            *ecx = R.way / 64 - 1;
        }
        break;
    case 7:
        if (count == 0) {
            if (R.cmt || R.mbm) {
                *ebx |= 1u << 12;
            }
            if (R.cat || R.mba || R.l2) {
                *ebx |= 1u << 15;
            }
        }
        break;
    case 0xA:
        if (R.pmu) {                  /* v2, 4 x 48-bit, 3 fixed */
            *eax = 2 | 4 << 8 | 48 << 16 | 7 << 24;
            *ebx = R.obey ? 0x60 : 0; /* branches are not counted there */
            *ecx = 0;
            *edx = 3 | 48 << 5;
        }
        break;
    case 0xF:
        *eax = *ebx = *ecx = *edx = 0;
        if (!(R.cmt || R.mbm)) {
            break;
        }
        if (count == 0) {
            *ebx = R.rmid - 1;
            *edx = 2;
        } else if (count == 1) {
            *eax = R.width;
            *ebx = R.scale;
            *ecx = R.rmid - 1;
            *edx = (R.cmt ? 1 : 0) | (R.mbm ? 6 : 0);
        }
        break;
    case 0x10:
        *eax = *ebx = *ecx = *edx = 0;
        if (count == 0) {
            *ebx = (R.cat ? 2 : 0) | (R.l2 ? 4 : 0) | (R.mba ? 8 : 0);
        } else if (count == 2 && R.l2) {
            *eax = R.l2 - 1;
            *edx = R.l2clos - 1;
        } else if (count == 1 && R.cat) {
            *eax = R.cbm - 1;
            *ebx = R.share;
            *ecx = (R.cdp ? 4 : 0) | (R.noncont ? 8 : 0);
            *edx = R.clos - 1;
        } else if (count == 3 && R.mba) {
            *eax = 89;                /* max throttle 90 */
            *ecx = 4;                 /* linear */
            *edx = R.mbaclos - 1;
        }
        break;
    }
}

/* 0-3: PMC, 4-6: fixed, 7: fixed ctrl, 8: global ctrl, 9-12: evtsel */
static struct { uint64_t v[13]; int64_t base; } P[CPUS];

static int pmu_reg(uint32_t msr)
{
    return msr >= 0xC1 && msr < 0xC5 ? msr - 0xC1 :
           msr >= 0x4C1 && msr < 0x4C5 ? msr - 0x4C1 :
           msr >= 0x309 && msr < 0x30C ? 4 + msr - 0x309 :
           msr == 0x38D ? 7 : msr == 0x38F ? 8 :
           msr >= 0x186 && msr < 0x18A ? 9 + msr - 0x186 : -1;
}

static bool enabled(int i, int k)
{
    return k < 4 ? (P[i].v[8] >> k & 1) && (P[i].v[9 + k] >> 22 & 1)
                 : (P[i].v[8] >> (28 + k) & 1) && (P[i].v[7] >> (4 * (k - 4)) & 3);
}

/* Without waits, an instruction takes a nanosecond, which is a cycle. */
static uint64_t instructions(int i)
{
    return R.cpu[i].cs ? rr_time(R.cpu[i].cs) - rr_slept(R.cpu[i].cs) - M[i].waited : 0;
}

static uint64_t counted(int i, int k)
{
    switch (k < 4 ? P[i].v[9 + k] & 0xffff : k == 4 ? 0xc0 : 0x3c) {
    case 0xc0:
        return instructions(i);
    case 0x3c: case 0x13c:
        return instructions(i) + M[i].waited;
    case 0x4f2e:
        return M[i].seen.hits + M[i].seen.misses;
    case 0x412e:
        return M[i].seen.misses;
    default:
        return 0;
    }
}

/* Add what happened since the last look, to those that are enabled. */
static void count_obeyed(int i)
{
    static uint64_t before[CPUS][7];
    for (int k = 0; k < 7; k++) {
        uint64_t now = counted(i, k);
        if (enabled(i, k)) {
            P[i].v[k] = (P[i].v[k] + now - before[i][k]) & ((1ull << 48) - 1);
        }
    }
    for (int k = 0; k < 7; k++) {
        before[i][k] = counted(i, k);
    }
}

static void pmu_advance(int i)
{
    static const int per_us[7] = { 40, 40, 40, 40, 1600, 2000, 2000 };
    int64_t now;
    uint64_t dt;

    if (R.obey) {
        count_obeyed(i);
        return;
    }
    now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    dt = (now - P[i].base) / 1000;
    for (int k = 0; k < 7; k++) {
        if (enabled(i, k)) {
            P[i].v[k] = (P[i].v[k] + dt * per_us[k]) & ((1ull << 48) - 1);
        }
    }
    P[i].base += dt * 1000;
}

static int me(CPUX86State *env)
{
    CPUState *cs = env_cpu(env);
    X86CPU *cpu = env_archcpu(env);
    int i = cs->cpu_index % CPUS;
    if (!R.cpu[i].cs) {
        X86CPUTopoInfo ti = { .dies_per_pkg = env->nr_dies,
                              .cores_per_die = cs->nr_cores,
                              .threads_per_core = cs->nr_threads };
        X86CPUTopoIDs ids;
        x86_topo_ids_from_apicid(cpu->apic_id, &ti, &ids);
        R.cpu[i].pkg = ids.pkg_id % PKGS;
        R.cpu[i].cs = cs;
    }
    return i;
}

/* Advance the occupancy/bandwidth model of one package to 'now'. */
static void rdt_advance(int p)
{
    RDTPkg *g = &R.pkg[p];
    int64_t now;
    double dt, l3 = (double)R.way * R.cbm, sum = 0;

    if (R.obey) {
        return;
    }
    now = qemu_clock_get_ns(QEMU_CLOCK_VIRTUAL);
    dt = (now - g->last) / 1e9;
    if (dt <= 0) {
        return;
    }
    g->last = now;
    for (uint32_t r = 0; r < R.rmid; r++) {
        g->occ[r] *= exp2(-dt / 2.0);         /* 2 s half-life when idle */
    }
    for (int i = 0; i < CPUS; i++) {
        if (R.cpu[i].cs && R.cpu[i].pkg == p && !R.cpu[i].cs->halted) {
            uint32_t r = R.cpu[i].rmid, c = R.cpu[i].clos;
            uint64_t m = g->mask[g->cdp ? 2 * c : c];
            double fill = dt * R.rate * 1e6 * (100 - (double)g->thrtl[c]) / 100;
            double cap = (double)ctpop64(m) * R.way;
            g->tot[r] += fill;
            g->loc[r] += fill * 0.75;
            if (g->occ[r] < cap) {
                g->occ[r] = MIN(cap, g->occ[r] + fill);
            } else {
                g->occ[r] = cap;
            }
        }
    }
    for (uint32_t r = 0; r < R.rmid; r++) {
        sum += g->occ[r];
    }
    if (sum > l3) {
        for (uint32_t r = 0; r < R.rmid; r++) {
            g->occ[r] *= l3 / sum;
        }
    }
}

static bool cbm_ok(uint64_t v)
{
    if (!v || v >> R.cbm) {
        return false;
    }
    if (!R.noncont) {
        v >>= ctz64(v);
        return !(v & (v + 1));
    }
    return true;
}

/* 0: not ours, 1: done, -1: #GP */
static void tell_class(int i, const char *what, uint32_t class, uint64_t value)
{
    if (truth) {
        fprintf(truth, "%" PRId64 ",%s,%d,%u,,%u,,,,,,%" PRIu64 "\n",
                rr_time(R.cpu[i].cs) + idle, what, R.cpu[i].pkg, class, class, value);
    }
}

int rdt_wrmsr(CPUX86State *env, uint32_t msr, uint64_t val)
{
    int i, ret = 1;
    RDTPkg *g;

    rdt_init();
    if (!R.on) {
        return 0;
    }
    qemu_mutex_lock(&R.lock);
    i = me(env);
    g = &R.pkg[R.cpu[i].pkg];
    rdt_advance(R.cpu[i].pkg);
    if (msr == 0xC81 && R.cdp) {
        if (val & ~1ull) {
            ret = -1;
        } else {
            g->cdp = val;
        }
    } else if (R.pmu && pmu_reg(msr) >= 0) {
        pmu_advance(i);
        P[i].v[pmu_reg(msr)] = val;
        if (R.obey) {
            count_obeyed(i);          /* an event that was chosen just now counts from here */
            P[i].v[pmu_reg(msr)] = val;
        }
    } else if (msr == 0xC8D) {
        if ((val >> 32) >= R.rmid) {
            ret = -1;
        } else {
            R.cpu[i].evtsel = val;
        }
    } else if (msr == 0xC8E) {
        ret = -1;
    } else if (msr == 0xC8F) {
        if ((val & 0xffffffff) >= R.rmid || (val >> 32) >= MAX(R.clos, R.mbaclos)) {
            ret = -1;
        } else {
            R.cpu[i].rmid = val & 0x3ff;
            R.cpu[i].clos = val >> 32;
            rdt_model(env);
        }
    } else if (R.cat && msr >= 0xC90 && msr < 0xC90 + R.clos) {
        if (!cbm_ok(val)) {
            ret = -1;
        } else {
            g->mask[msr - 0xC90] = val & R.tied ? val | R.tied : val;
            tell_class(i, "mask", msr - 0xC90, g->mask[msr - 0xC90]);
        }
    } else if (R.mba && msr >= 0xD50 && msr < 0xD50 + R.mbaclos) {
        if (val > 90) {
            ret = -1;
        } else {
            g->thrtl[msr - 0xD50] = R.steep && (val == 20 || val == 30) ? 10 : val;
            tell_class(i, "throttle", msr - 0xD50, g->thrtl[msr - 0xD50]);
        }
    } else if (R.l2 && msr >= 0xD10 && msr < 0xD10 + R.l2clos) {
        uint64_t run = val ? val >> ctz64(val) : 0;
        if (!val || val >> R.l2 || (run & (run + 1))) {
            ret = -1;
        } else {
            R.cpu[i].l2[msr - 0xD10] = val;
        }
    } else if (msr == 0x52445401) {   /* fault injection: select rmid|evt<<16 and bits 63/62 */
        R.inject = val;
        g->fault[val & 0xff][(val >> 16) & 3] = val & (3ull << 62);
    } else if (msr == 0x52445402) {   /* preset the selected counter, bytes */
        uint32_t r = R.inject & 0xff;
        switch ((R.inject >> 16) & 3) {
        case 1: g->occ[r] = val; break;
        case 2: g->tot[r] = val; break;
        case 3: g->loc[r] = val; break;
        }
    } else {
        ret = 0;
    }
    qemu_mutex_unlock(&R.lock);
    return ret;
}

int rdt_rdmsr(CPUX86State *env, uint32_t msr, uint64_t *val)
{
    int i, ret = 1;
    RDTPkg *g;

    rdt_init();
    if (!R.on) {
        return 0;
    }
    qemu_mutex_lock(&R.lock);
    i = me(env);
    g = &R.pkg[R.cpu[i].pkg];
    if (msr == 0xC81 && R.cdp) {
        *val = g->cdp;
    } else if (R.pmu && pmu_reg(msr) >= 0) {
        pmu_advance(i);
        *val = P[i].v[pmu_reg(msr)];
    } else if (msr == 0xC8D) {
        *val = R.cpu[i].evtsel;
    } else if (msr == 0xC8E) {
        uint32_t r = (R.cpu[i].evtsel >> 32) & 0xff, e = R.cpu[i].evtsel & 0xff;
        double d = 0;
        rdt_advance(R.cpu[i].pkg);
        if ((e == 1 && R.cmt) || ((e == 2 || e == 3) && R.mbm)) {
            d = R.obey ? obeyed(R.cpu[i].pkg, r, e) : e == 1 ? g->occ[r] : e == 2 ? g->tot[r] : g->loc[r];
            *val = (uint64_t)(d / R.scale) & ((1ull << (24 + R.width)) - 1);
            *val |= g->fault[r][e] | (R.blind && r >= R.blind ? 1ull << 62 : 0);
        } else {
            *val = 1ull << 63;
        }
    } else if (msr == 0xC8F) {
        *val = R.cpu[i].rmid | (uint64_t)R.cpu[i].clos << 32;
    } else if (R.cat && msr >= 0xC90 && msr < 0xC90 + R.clos) {
        *val = g->mask[msr - 0xC90];
    } else if (R.mba && msr >= 0xD50 && msr < 0xD50 + R.mbaclos) {
        *val = g->thrtl[msr - 0xD50];
    } else if (R.l2 && msr >= 0xD10 && msr < 0xD10 + R.l2clos) {
        *val = R.cpu[i].l2[msr - 0xD10];
    } else {
        ret = 0;
    }
    qemu_mutex_unlock(&R.lock);
    return ret;
}
