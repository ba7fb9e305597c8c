/* tree: lookups in a balanced binary tree whose nodes lie anywhere: chains of dependent loads with hot upper levels. */
#include "kernel.h"
#include "passes.h"

#define TREE_MOST (1u << 22) /* of a pass: it bounds how long the verdict takes */
#define TREE_DEEPEST 64

struct node {
    uint64_t key;
    struct node *child[2]; /* with smaller and with larger keys */
    uint64_t load;
};

struct tree {
    struct node *nodes, *root;
    uint64_t count;
    cm_passes pass;
};

static uint64_t tree_key(uint64_t rank) { return (rank << 16) + (cm_mix(rank) & 0xffff); }
static uint64_t tree_load(uint64_t rank) { return cm_mix(~rank); }

/* Plant the nodes of ranks `from` to `end` as a balanced tree; `place` gives where each rank's node lies. */
static struct node *tree_plant(struct tree *s, const uint32_t *place, uint64_t from, uint64_t end)
{
    uint64_t rank = from + (end - from) / 2;
    if (from == end)
        return NULL;
    struct node *node = &s->nodes[place[rank]];
    node->key = tree_key(rank);
    node->load = tree_load(rank);
    node->child[0] = tree_plant(s, place, from, rank);
    node->child[1] = tree_plant(s, place, rank + 1, end);
    return node;
}

static uint32_t *tree_places(uint64_t count)
{
    uint32_t *place = malloc(count * sizeof *place);
    uint64_t seed = 20240607;
    for (uint64_t i = 0; place != NULL && i < count; i++) {
        uint64_t j = cm_place(cm_mix(seed++), i + 1);
        place[i] = place[j];
        place[j] = (uint32_t)i;
    }
    return place;
}

static void *tree_prepare(const cm_options *options, unsigned thread)
{
    struct tree *s = cm_state(sizeof *s);
    (void)thread;
    if (s == NULL)
        return NULL;
    s->count = cm_share(options) / sizeof(struct node);
    s->count = s->count > UINT32_MAX ? UINT32_MAX : s->count;
    s->pass.length = s->count < TREE_MOST ? s->count : TREE_MOST;
    s->nodes = cm_allocate(s->count * sizeof(struct node), options->huge);
    uint32_t *place = s->nodes == NULL ? NULL : tree_places(s->count);
    if (place == NULL)
        return NULL;
    s->root = tree_plant(s, place, 0, s->count);
    free(place);
    return s;
}

static uint64_t tree_rank(const struct tree *s, uint64_t i) { return cm_place(cm_mix(i + 1), s->count); }

static __attribute__((noinline)) uint64_t tree_walk(const struct tree *s, uint64_t from, uint64_t count)
{
    uint64_t sum = 0;
    for (uint64_t i = from; i < from + count; i++) {
        uint64_t key = tree_key(tree_rank(s, i));
        const struct node *node = s->root;
        while (node != NULL && node->key != key) {
            uint64_t child = node->key < key;
            CM_PIN(child); /* a branch would be guessed, and the next load would not wait for this one */
            node = node->child[child];
        }
        sum += node != NULL ? node->load : 1;
    }
    return sum;
}

static void tree_work(void *state, uint64_t units)
{
    struct tree *s = state;
    while (units > 0) {
        uint64_t n = cm_in_pass(&s->pass, units);
        s->pass.sum += tree_walk(s, s->pass.at, n);
        cm_advance(&s->pass, n);
        units -= n;
    }
}

static void tree_restart(void *state) { (void)state; }

static uint64_t tree_found(const void *state, uint64_t i) { return tree_load(tree_rank(state, i)); }

/* Visit nodes by rising key; return how many are right and in order from `rank` on, or UINT64_MAX. */
static uint64_t tree_in_order(const struct tree *s, const struct node *node, uint64_t rank, unsigned depth)
{
    if (node == NULL)
        return rank;
    uintptr_t offset = (uintptr_t)node - (uintptr_t)s->nodes;
    if (offset % sizeof *node != 0 || offset / sizeof *node >= s->count || depth == TREE_DEEPEST || rank > s->count)
        return UINT64_MAX;
    rank = tree_in_order(s, node->child[0], rank, depth + 1);
    if (rank >= s->count || node->key != tree_key(rank) || node->load != tree_load(rank))
        return UINT64_MAX;
    return tree_in_order(s, node->child[1], rank + 1, depth + 1);
}

static const char *tree_verify(void *state)
{
    const struct tree *s = state;
    if (!cm_sum_is_right(&s->pass, tree_found, s))
        return "the sum of what the lookups found is not that of their keys";
    return tree_in_order(s, s->root, 0, 0) == s->count ? NULL : "the tree is not the one that was planted";
}

static const cm_kernel tree_kernel = {
    .name = "tree",
    .does = "Lookups of random keys in a balanced binary tree: dependent loads whose upper levels stay in the cache.",
    .unit = "one lookup",
    .takes = CM_BYTES | CM_RATE | CM_THREADS | CM_HUGE,
    .defaults = {.bytes = 64u << 20, .threads = 1},
    .step = 1,
    .prepare = tree_prepare,
    .work = tree_work,
    .restart = tree_restart,
    .verify = tree_verify,
};

#ifndef CM_PART
int main(int argc, char **argv) { return cm_main(&tree_kernel, argc, argv); }
#endif
