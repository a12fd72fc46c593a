#include "plugin/policy/lend.h"

#include <string.h>

static struct gv_refusal refusal(enum gv_obstacle obstacle, int a, int b)
{
    return (struct gv_refusal){.obstacle = obstacle, .a = a, .b = b};
}

enum gv_obstacle gv_p2p_obstacle(const struct gv_facts *facts, int a, int b)
{
    if (gv_gpuset_has(facts->refused[a], b))
        return GV_REFUSED;
    if (gv_gpuset_has(facts->bad[a], b))
        return GV_BAD;
    return gv_gpuset_has(facts->sound[a], b) ? GV_NO_OBSTACLE : GV_NOT_VERIFIED;
}

static enum gv_obstacle sm_obstacle(const struct gv_facts *facts, int gpu)
{
    int sm = facts->profile->gpus[gpu].sm;
    return sm <= 0 ? GV_SM_UNKNOWN : sm == 80 ? GV_SM_READS : GV_NO_OBSTACLE;
}

static enum gv_obstacle end_obstacle(const struct gv_facts *facts, int gpu, int peer)
{
    enum gv_obstacle sm = sm_obstacle(facts, gpu);
    if (sm)
        return sm;
    if (gv_gpuset_count(facts->peers[gpu] | GV_GPU_BIT(peer)) > GV_MAX_PEERS)
        return GV_PEERS;
    return facts->chains && facts->nvlink[gpu] ? GV_NVB : GV_NO_OBSTACLE;
}

enum gv_obstacle gv_lend_obstacle(const struct gv_facts *facts, int a, int b)
{
    enum gv_obstacle obstacle = gv_p2p_obstacle(facts, a, b);
    if (!obstacle)
        obstacle = end_obstacle(facts, a, b);
    return obstacle ? obstacle : end_obstacle(facts, b, a);
}

void gv_lendable(const struct gv_facts *facts, gv_gpuset gpus, gv_gpuset out[GV_MAX_GPUS])
{
    memset(out, 0, GV_MAX_GPUS * sizeof(*out));
    for (gv_gpuset x = gpus; x; x &= x - 1)
        for (gv_gpuset y = gpus; y; y &= y - 1) {
            int a = gv_gpuset_first(x), b = gv_gpuset_first(y);
            if (!gv_facts_joined(facts, a, b) && !gv_lend_obstacle(facts, a, b))
                out[a] |= GV_GPU_BIT(b);
        }
}

void gv_lent_pairs(const struct gv_lent *lent, gv_gpuset out[GV_MAX_GPUS])
{
    memset(out, 0, GV_MAX_GPUS * sizeof(*out));
    for (int i = 0; i < lent->count; i++) {
        out[lent->pair[i][0]] |= GV_GPU_BIT(lent->pair[i][1]);
        out[lent->pair[i][1]] |= GV_GPU_BIT(lent->pair[i][0]);
    }
}

bool gv_lend_two(const struct gv_facts *facts, int gpu)
{
    return !facts->chains && gv_gpuset_count(facts->peers[gpu]) + 2 <= GV_MAX_PEERS;
}

/* NCCL's tree is a chain inside a host and has its own path type: a chain of NVLinks alone is
 * enough to allow LL128. Such a chain needs two NVLinks at every GPU but its two ends; whether one
 * exists is not searched for, this is the safe side of it. */
static bool chain_of_nvlinks(gv_gpuset gpus, const gv_gpuset links[GV_MAX_GPUS])
{
    int ends = 0;
    for (; gpus; gpus &= gpus - 1) {
        int n = gv_gpuset_count(links[gv_gpuset_first(gpus)]);
        if (n == 0)
            return false;
        ends += n == 1;
    }
    return ends <= 2;
}

struct gv_refusal gv_lent_check(const struct gv_facts *facts, gv_gpuset gpus, struct gv_lent *lent)
{
    gv_gpuset added[GV_MAX_GPUS], links[GV_MAX_GPUS];
    if (!lent->count)
        return refusal(GV_NOTHING_CROSSES, -1, -1);
    for (int i = 0; i < lent->count; i++) {
        int a = lent->pair[i][0], b = lent->pair[i][1];
        enum gv_obstacle obstacle = gv_lend_obstacle(facts, a, b);
        if (obstacle)
            return refusal(obstacle, a, b);
    }
    gv_lent_pairs(lent, added);
    lent->nvb_disable = false;
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int a = gv_gpuset_first(rest);
        links[a] = added[a] | (facts->nvlink[a] & gpus);
        if (gv_gpuset_count(facts->peers[a] | added[a]) > GV_MAX_PEERS && added[a])
            return refusal(GV_PEERS, a, -1);
        if (!added[a] || gv_gpuset_count(added[a] | facts->nvlink[a]) < 2)
            continue;
        if (facts->chains)
            return refusal(GV_NVB, a, -1);
        lent->nvb_disable = true;
    }
    return refusal(chain_of_nvlinks(gpus, links) ? GV_ALL_NVLINK : GV_NO_OBSTACLE, -1, -1);
}

static struct gv_refusal bridge_pair(const struct gv_facts *facts, int a, int b)
{
    const struct gv_profile_gpu *gpus = facts->profile->gpus;
    if (gpus[a].numa_node < 0 || gpus[a].numa_node != gpus[b].numa_node)
        return refusal(GV_CPU_NODES, a, b);
    return refusal(
        gv_facts_joined(facts, a, b) ? GV_NO_OBSTACLE : gv_p2p_obstacle(facts, a, b), a, b);
}

struct gv_refusal gv_bridge_check(const struct gv_facts *facts, gv_gpuset gpus)
{
    bool crosses = false;
    if (gv_gpuset_count(gpus) > GV_MAX_PEERS + 1)
        return refusal(GV_BRIDGE_SIZE, -1, -1);
    for (gv_gpuset rest = gpus; rest; rest &= rest - 1) {
        int a = gv_gpuset_first(rest);
        for (gv_gpuset others = rest & (rest - 1); others; others &= others - 1) {
            int b = gv_gpuset_first(others);
            struct gv_refusal pair = bridge_pair(facts, a, b);
            if (pair.obstacle)
                return pair;
            crosses |= !gv_facts_joined(facts, a, b);
        }
        if (gv_gpuset_count((facts->peers[a] | gpus) & ~GV_GPU_BIT(a)) > GV_MAX_PEERS)
            return refusal(GV_PEERS, a, -1);
    }
    return refusal(crosses ? GV_NO_OBSTACLE : GV_NOTHING_CROSSES, -1, -1);
}
