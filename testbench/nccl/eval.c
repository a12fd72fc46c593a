#include "testbench/nccl/gv_nccl_eval.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "testbench/nccl/graph.h"
#include "testbench/nccl/paths.h"
#include "testbench/nccl/prepare.h"
#include "testbench/nccl/search.h"

static const char *const path_names[] = {"LOC", "NVL", "NVB", "C2C", "PIX", "PXB",
                                         "P2C", "PXN", "PHB", "SYS", "NET", "DIS"};

const char *gv_nccl_path_name(enum gv_nccl_path path)
{
    return path <= GV_NCCL_DIS ? path_names[path] : "?";
}

int gv_nccl_p2p_level(const char *value, int release)
{
    static const enum gv_nccl_path numbered[] = {
        GV_NCCL_LOC, GV_NCCL_PIX, GV_NCCL_PXB, GV_NCCL_PHB, GV_NCCL_SYS};
    for (enum gv_nccl_path p = GV_NCCL_LOC; p <= GV_NCCL_SYS; p++)
        if (!strcmp(value, path_names[p]))
            return gv_nt_path_exists(p, release) ? (int)p : -1;
    if (value[0] < '0' || value[0] > '9')
        return -1;
    long level = strtol(value, NULL, 0);
    return (int)numbered[level < 4 ? level : 4];
}

static int bad_input(struct gv_nccl_eval_out *out, const char *text)
{
    snprintf(out->error, sizeof(out->error), "%s", text);
    return GV_NCCL_INVALID_ARGUMENT;
}

static int check_input(const struct gv_nccl_eval_in *in, struct gv_nccl_eval_out *out)
{
    if (in->ngpus < 1 || in->ngpus > GV_NCCL_MAX_GPUS)
        return bad_input(out, "a communicator has 1 to 64 GPUs here");
    if (in->release < 21900)
        return bad_input(out, "releases before 2.19 are not modelled");
    for (int i = 0; i < in->ngpus; i++)
        for (int k = 0; k < i; k++)
            if (in->gpus[i] == in->gpus[k]) {
                snprintf(
                    out->error, sizeof(out->error),
                    "duplicate GPU detected: ranks %d and %d both on device %d", k, i, in->gpus[i]);
                return GV_NCCL_INVALID_USAGE;
            }
    return 0;
}

static struct gv_nt_node *node_of_rank(const struct gv_nt_system *sys, int rank)
{
    for (int i = 0; i < sys->count[GV_NT_GPU]; i++)
        if (sys->node[GV_NT_GPU][i]->rank == rank)
            return sys->node[GV_NT_GPU][i];
    return NULL;
}

/* GPUs that reach each other without the network, as NCCL groups them: domain[i] of the i-th node
 * is the lowest index that it joins. Returns how many groups there are. */
static int find_domains(const struct gv_nt_system *sys, int *domain)
{
    int n = sys->count[GV_NT_GPU], groups = 0;
    for (int g = 0; g < n; g++) {
        domain[g] = g;
        for (int p = 0; p < g; p++) {
            const struct gv_nt_path *path =
                gv_nt_path_between(sys, sys->node[GV_NT_GPU][g], sys->node[GV_NT_GPU][p]);
            if (path->type < GV_NCCL_NET && domain[p] < domain[g])
                domain[g] = domain[p];
        }
        groups += domain[g] == g;
    }
    return groups;
}

/* Releases up to 2.27 drop the network devices of a host once all ranks are on it. */
static int settle_paths(struct gv_nt_system *sys, struct gv_nt_rules *rules, int *domain)
{
    rules->use_nets = true;
    int rc = gv_nt_compute_paths(sys, rules);
    if (rc)
        return rc;
    int groups = find_domains(sys, domain);
    if (groups == 1 && sys->release < 22800) {
        rules->use_nets = false;
        rc = gv_nt_compute_paths(sys, rules);
    }
    rules->nets_known = true;
    sys->crosses_network = groups > 1;
    return rc;
}

static int fill_pair(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, int a, int b,
    struct gv_nccl_eval_out *out)
{
    const struct gv_nt_node *from = node_of_rank(sys, a), *to = node_of_rank(sys, b), *via = NULL;
    const struct gv_nt_path *path = gv_nt_path_between(sys, from, to);
    struct gv_nccl_pair *pair = &out->pair[a][b];
    *pair =
        (struct gv_nccl_pair){.path = path->type, .gbs = path->gbs, .via = -1, .transport = '-'};
    if (a == b)
        return 0;
    int rc = gv_nt_p2p(sys, rules, from, to, &pair->p2p, &via);
    if (via && pair->p2p)
        pair->via = via->rank;
    pair->transport = pair->p2p ? 'P' : gv_nt_shm(sys, rules, from, to) ? 'S' : 'N';
    return rc;
}

static int fill_pairs(
    const struct gv_nt_system *sys, const struct gv_nt_rules *rules, struct gv_nccl_eval_out *out)
{
    for (int a = 0; a < out->n; a++)
        for (int b = 0; b < out->n; b++) {
            int rc = fill_pair(sys, rules, a, b, out);
            if (rc)
                return rc;
        }
    return 0;
}

/* Sender and receiver map each other's buffers; an indirect connection runs through the buffers of
 * the GPU in between. */
static void count_peers(struct gv_nccl_eval_out *out)
{
    uint64_t mapped[GV_NCCL_MAX_GPUS] = {0};
    for (int a = 0; a < out->n; a++)
        for (int b = 0; b < out->n; b++) {
            const struct gv_nccl_pair *pair = &out->pair[a][b];
            int far = pair->via >= 0 ? pair->via : b;
            if (!pair->p2p)
                continue;
            mapped[a] |= (uint64_t)1 << far;
            mapped[far] |= (uint64_t)1 << a | (uint64_t)1 << b;
            mapped[b] |= (uint64_t)1 << (pair->via >= 0 ? pair->via : a);
        }
    for (int a = 0; a < out->n; a++)
        out->peers[a] = __builtin_popcountll(mapped[a] & ~((uint64_t)1 << a));
}

int gv_nccl_alltoall(const struct gv_nccl_eval_out *eval, char *error, size_t size)
{
    for (int a = 0; a < eval->n; a++) {
        if (eval->peers[a] <= GV_NCCL_MAX_PEERS)
            continue;
        snprintf(
            error, size,
            "failed to peer with device %d (rank %d): 711 peer mapping resources exhausted (%d "
            "peers, CUDA allows %d)",
            eval->devices[a], a, eval->peers[a], GV_NCCL_MAX_PEERS);
        return GV_NCCL_CUDA_ERROR;
    }
    return GV_NCCL_SUCCESS;
}

/* The ring as the log shows it: from rank 0 on. */
static void set_ring(const int *order, struct gv_nccl_eval_out *out)
{
    int start = 0;
    while (start < out->n - 1 && order[start])
        start++;
    for (int i = 0; i < out->n; i++) {
        int a = order[(start + i) % out->n], b = order[(start + i + 1) % out->n];
        out->ring[i] = out->devices[a];
        out->transport[i] = out->pair[a][b].transport;
    }
    out->transport[out->n] = '\0';
}

static bool ll128_fits(const struct gv_nccl_eval_out *out, enum gv_nccl_path type, int release)
{
    /* Up to 2.26 three compute capabilities were named, since 2.27 all from 7.0 on. */
    bool known = out->min_sm == 70 || out->min_sm == 80 || out->min_sm == 90;
    if (release >= 22700)
        known = out->min_sm >= 70;
    bool even = out->min_sm == out->max_sm || (release >= 23000 && out->min_sm >= 90);
    return known && even && type <= GV_NCCL_NVB;
}

static void set_sm(const struct gv_nt_system *sys, int sm, struct gv_nccl_eval_out *out)
{
    out->min_sm = out->max_sm = sm ? sm : sys->node[GV_NT_GPU][0]->sm;
    for (int g = 0; g < sys->count[GV_NT_GPU] && !sm; g++) {
        int one = sys->node[GV_NT_GPU][g]->sm;
        out->min_sm = one < out->min_sm ? one : out->min_sm;
        out->max_sm = one > out->max_sm ? one : out->max_sm;
    }
}

/* Six decimals, as the log shows them. */
static double shown(float gbs)
{
    return round((double)gbs * 1e6) / 1e6;
}

/* Ring first; the tree must have as many channels, and the communicator takes the fewer, twice. */
static void search_graphs(struct gv_nt_system *sys, struct gv_nccl_eval_out *out, int *order)
{
    int max_channels = sys->release < 22500 ? 32 : 64;
    struct gv_nt_plan *ring = calloc(2, sizeof(*ring)), *tree = ring + 1;
    *ring = (struct gv_nt_plan){
        .shape = GV_NT_RING, .min_channels = 1, .max_channels = max_channels / 2};
    gv_nt_search(sys, ring);
    tree->shape = out->n == 1 ? GV_NT_TREE_CHAIN : GV_NT_TREE_BALANCED;
    tree->min_channels = tree->max_channels = ring->channels;
    gv_nt_search(sys, tree);
    out->graph_path = ring->type;
    out->graph_path_tree = tree->type;
    out->graph_channels = ring->channels;
    out->graph_gbs = shown(ring->gbs_intra);
    out->tree_channels = tree->channels;
    out->tree_gbs = shown(tree->gbs_intra);
    out->tree_chain = tree->shape == GV_NT_TREE_CHAIN;
    out->same_channels = ring->same_channels;
    int both = ring->channels < tree->channels ? ring->channels : tree->channels;
    out->channels = 2 * both < max_channels ? 2 * both : max_channels;
    memcpy(order, ring->order, (size_t)out->n * sizeof(int));
    free(ring);
}

/* NCCL would search one ring part per group, from network device to network device. Here: groups
 * after their lowest rank, GPUs in file order, the figures of the slowest speed. */
static void guess_order(
    const struct gv_nt_system *sys, const int *domain, struct gv_nccl_eval_out *out, int *order)
{
    int at = 0;
    bool done[GV_NCCL_MAX_GPUS] = {false};
    for (int r = 0; r < out->n; r++) {
        int group = domain[node_of_rank(sys, r)->index];
        for (int g = 0; g < out->n && !done[group]; g++)
            if (domain[g] == group)
                order[at++] = sys->node[GV_NT_GPU][g]->rank;
        done[group] = true;
    }
    out->approximate = true;
    out->graph_path = out->graph_path_tree = GV_NCCL_SYS;
    out->graph_channels = out->tree_channels = 1;
    out->graph_gbs = out->tree_gbs = 0.1;
    out->channels = 2;
}

/* A GPU below another GPU, or below a device of an odd class, never becomes a node. */
static int check_ranks(const struct gv_nt_system *sys, int n)
{
    for (int r = 0; r < n; r++)
        if (!node_of_rank(sys, r)) {
            snprintf(
                sys->err->text, sizeof(sys->err->text), "could not find the GPU of rank %d", r);
            return GV_NCCL_INTERNAL_ERROR;
        }
    return sys->count[GV_NT_GPU] == n ? 0 : GV_NCCL_INTERNAL_ERROR;
}

static int evaluate_system(
    const struct gv_nccl_eval_in *in, struct gv_nt_system *sys, struct gv_nccl_eval_out *out)
{
    struct gv_nt_rules rules = {
        .nop2p = in->nop2p,
        .p2p_level = in->p2p_disable ? GV_NCCL_LOC : in->p2p_level,
        .shm_disable = in->shm_disable,
        .nvb_disable = in->nvb_disable};
    int domain[GV_NCCL_MAX_GPUS], order[GV_NCCL_MAX_GPUS];
    int rc = check_ranks(sys, out->n);
    rc = rc ? rc : settle_paths(sys, &rules, domain);
    rc = rc ? rc : fill_pairs(sys, &rules, out);
    if (rc)
        return rc;
    set_sm(sys, in->sm, out);
    count_peers(out);
    if (sys->crosses_network)
        guess_order(sys, domain, out, order);
    else
        search_graphs(sys, out, order);
    set_ring(order, out);
    out->ll128_allowed = !out->approximate && ll128_fits(out, out->graph_path, in->release);
    out->ll128_tree = !out->approximate && ll128_fits(out, out->graph_path_tree, in->release);
    return 0;
}

int gv_nccl_evaluate(const struct gv_nccl_eval_in *in, struct gv_nccl_eval_out *out)
{
    struct gv_nt_elem *tree = NULL;
    struct gv_nt_system *sys = NULL;
    struct gv_nt_error err = {""};
    memset(out, 0, sizeof(*out));
    out->result = check_input(in, out);
    if (out->result)
        return out->result;
    out->n = in->ngpus;
    memcpy(out->devices, in->gpus, (size_t)in->ngpus * sizeof(int));
    out->result = gv_nt_prepare(in, &tree, &err);
    if (!out->result)
        out->result = gv_nt_system_build(tree, in->release, &sys, &err);
    if (!out->result)
        out->result = evaluate_system(in, sys, out);
    if (out->result) {
        int result = out->result;
        memset(out, 0, sizeof(*out));
        out->result = result;
        snprintf(out->error, sizeof(out->error), "%s", err.text);
    }
    gv_nt_system_free(sys);
    gv_nt_xml_free(tree);
    return out->result;
}
