/* Profiles that are right: round trips, what 4028 says, questions about pairs. */
#include "tests/gv_test.h"
#include "tests/profile_4028.h"

#include <limits.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/gv_str.h"
#include "config/gv_profile.h"
#include "config/schema.h"

/* Every key that the schema knows, with values that are awkward to print. */
static const char full[] =
    "gv100_profile: 1\n"
    "name: \"yes: #1 \\\"q\\\" \\\\ \\u00e9\"\n"
    "machine:\n"
    "  match: uuid\n"
    "  cpu_vendor: amd\n"
    "  gpus:\n"
    "    - {index: 0, model: X, pci_vendor: 0x10de, pci_device: 0xdb6,\n"
    "       bus_id: \"00000000:1A:00.0\", uuid: GPU-1, memory_mib: 81559, numa_node: 0,\n"
    "       island: A, sm: 90, link_gen: 5, link_width: 8, link_gen_max: 6, link_width_max: 16,\n"
    "       power_limit_w: 700, app_core_mhz: 1, max_core_mhz: 1980, memory_mhz: 2619,\n"
    "       note: no, source: \"topo.txt:4, a:1\"}\n"
    "    - {index: 1, model: \"12\", uuid: GPU-2}\n"
    "    - {index: 2, model: ' lead', uuid: GPU-3}\n"
    "provenance:\n"
    "  {kind: cuda, date: 2026-08-23, driver: 580.1, cuda: 12.0, nccl: 2.28.9, tool: t,\n"
    "   nccl_tests: 2.13.11, source: \"a, [b] {c}\", kernel: 6.1, container: \"~\"}\n"
    "host: {cpu_model: \"a, b\", iommu: unknown, shm_mib: 0, peers: 8}\n"
    "memory:\n"
    "  - {gpus: \"0,2\", theoretical_gbs: 0.30000000000000004, copy_gbs: 804.21,\n"
    "     read_gbs: {median: 1e-7, min: 0, max: 123456.789, count: 9}, write_gbs: 1,\n"
    "     triad_gbs: 999999999.5, note: 'mean: of two', source: x}\n"
    "host_links:\n"
    "  - {gpus: 0-2, together: true, root_port: \"0000:16:00.0\", to_device_gbs: 12.5,\n"
    "     to_host_gbs: 0.1, source: \"y:7\"}\n"
    "paths:\n"
    "  - {from: 0, to: 1-2, both_directions: true, nccl_class: PHB, smi_class: NODE,\n"
    "     nvlinks: 0, p2p: one-way, write_gbs: 1.5, read_gbs: 2, both_ways_gbs: 3,\n"
    "     latency_us: 1.59, loaded_write_gbs: 0.5, host_path_gbs: 6, note: x,\n"
    "     acs: \"0000:16:00.0, 0000:17:00.0\", source: \"b.txt:31\"}\n"
    "  - {from: 1, to: 2, nccl_class: NVL, smi_class: NV12, nvlinks: 12, p2p: corrupt}\n"
    "groups:\n"
    "  - gpus: 0-2\n"
    "    op: AllToAll\n"
    "    bytes: 9007199254740993\n"
    "    loaded: true\n"
    "    ring: [2, 0, 1]\n"
    "    shm_edges: [[2, 0]]\n"
    "    variants:\n"
    "      - edit: lend\n"
    "        lend_count: 2\n"
    "        lend: [[2, 0], [0, 1]]\n"
    "        algorithm: NVLS_TREE\n"
    "        protocol: LL128\n"
    "        channels: 24\n"
    "        runs:\n"
    "          - {name: first, busbw_gbs: [0.1, 7, 1e-3], throttled: [false, true, false],\n"
    "             algbw_gbs: 6.98, source: \"t.txt:9\"}\n"
    "  - {gpus: \"2,1\", op: SendRecv, bytes: 320M, shm_edges: [],\n"
    "     variants: [{edit: none, runs: [{name: a, busbw_gbs: [1]}]}]}\n"
    "handoffs:\n"
    "  - {from: 0, to: 1, bytes: 320M, compute_us: 14400000, graph: true, host_traffic: true,\n"
    "     data_ok: true, host_method: mapped, peer_method: copy, host_us: 143000.5,\n"
    "     peer_us: {median: 7160, min: 7155, max: 7170, count: 5}, host_step_us: 1.5,\n"
    "     peer_step_us: 2, verdict: gain}\n"
    "  - {from: 2, to: 0, bytes: 16}\n"
    "tuner:\n"
    "  - {op: AllGather, min_bytes: 1, max_bytes: 4294967295, algorithm: PAT, protocol: SIMPLE,\n"
    "     channels: 8, nodes: 4, ranks: 32, pipe_ops: 2, registered: 1, source: \"t.conf:3\"}\n"
    "  - {op: AllReduce, algorithm: RING, protocol: LL}\n"
    "policy: {min_gain: 0.5, max_loss: 0, operations: [AllReduce, SendRecv]}\n"
    "complete: true\n";

static struct gv_profile *parse(const char *text)
{
    struct gv_error err = {0};
    struct gv_profile *p = gv_profile_parse(text, strlen(text), "text", &err);
    if (!p) {
        char line[1024];
        fail_msg("%s", gv_error_format(&err, line, sizeof(line)));
    }
    return p;
}

/* read -> write -> read is equal, write -> read -> write has the same bytes. */
static void round_trip(const struct gv_profile *p)
{
    struct gv_str first = {0}, second = {0};
    assert_int_equal(gv_profile_format(p, &first), 0);
    struct gv_profile *again = parse(first.data);
    assert_true(gv_profile_equal(p, again));
    assert_int_equal(gv_profile_format(again, &second), 0);
    assert_string_equal(first.data, second.data);
    gv_profile_free(again);
    gv_str_free(&first);
    gv_str_free(&second);
}

static void test_round_trips(void **state)
{
    (void)state;
    struct gv_profile *p = parse(full), *r = read_4028();
    round_trip(p);
    round_trip(r);
    assert_false(gv_profile_equal(p, r));
    gv_profile_free(p);
    gv_profile_free(r);
}

/* So that the round trip above covers whatever is added to the schema. */
static void each_key(const struct gv_object *type)
{
    for (int i = 0; i < type->nfields; i++) {
        char key[64];
        snprintf(key, sizeof(key), "%s:", type->fields[i].key);
        if (!strstr(full, key))
            fail_msg("the full profile of this test lacks %s of %s", key, type->name);
        if (type->fields[i].object)
            each_key(type->fields[i].object);
    }
}

static void test_full_has_every_key(void **state)
{
    (void)state;
    each_key(&gv_object_profile);
    struct gv_profile *p = parse(full);
    assert_string_equal(p->name, "yes: #1 \"q\" \\ \xc3\xa9");
    assert_string_equal(p->gpus[0].bus_id, "0000:1a:00.0");
    assert_string_equal(p->gpus[2].model, " lead");
    assert_string_equal(p->gpus[0].note, "no");
    assert_true(p->groups[0].bytes == 9007199254740993u);
    assert_true(p->groups[1].bytes == 320u << 20);
    assert_true(p->groups[1].shm_edges_known);
    assert_true(p->groups[0].variants[0].runs[0].throttled[1]);
    assert_int_equal(p->gpus[1].numa_node, -1);
    assert_true(isnan(p->paths[1].write_gbs.median));
    gv_profile_free(p);
}

/* A change of any one value is seen. */
static void test_equal_sees_each_value(void **state)
{
    (void)state;
    static const char *const changes[][2] = {
        {"memory_mib: 81559", "memory_mib: 81558"},
        {"count: 9", "count: 8"},
        {"min: 0", "min: 1e-9"},
        {"lend: [[2, 0]", "lend: [[2, 1]"},
        {"throttled: [false", "throttled: [true"},
        {"[0.1, 7,", "[0.1, 8,"},
        {"shm_edges: [],", ""},
        {"ring: [2, 0, 1]", "ring: [1, 2, 0]"},
        {"together: true", "together: false"},
        {"1-2, both", "1, both"},
        {"pci_device: 0xdb6", "pci_device: 0xdb7"},
        {"protocol: LL128", "protocol: LL"},
        {"[AllReduce, ", "[Reduce, "},
        {"max_loss: 0,", "max_loss: 0.01,"},
        {"bytes: 320M", "bytes: 321M"},
        {"note: no", "note: on"},
        {"graph: true", "graph: false"},
        {"verdict: gain", "verdict: loss"},
        {"max_bytes: 4294967295", "max_bytes: 4294967294"},
        {"registered: 1", "registered: 0"},
        {"peer_method: copy", "peer_method: read"},
        {"bytes: 16}", "bytes: 32}"},
        {"compute_us: 14400000", "compute_us: 1"},
    };
    struct gv_profile *p = parse(full);
    for (unsigned i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
        char text[sizeof(full) + 64];
        const char *at = strstr(full, changes[i][0]);
        if (!at)
            fail_msg("no %s", changes[i][0]);
        snprintf(
            text, sizeof(text), "%.*s%s%s", (int)(at - full), full, changes[i][1],
            at + strlen(changes[i][0]));
        struct gv_profile *q = parse(text);
        if (gv_profile_equal(p, q))
            fail_msg("not seen: %s", changes[i][1]);
        gv_profile_free(q);
    }
    gv_profile_free(p);
}

static const struct {
    const char *gpus;
    enum gv_edit_kind edit;
    int runs;
    double samples[3]; /* of all runs in order, 0 none */
    double algbw;
    int shm_edges;
} published[] = {
    {"0-1", GV_EDIT_NONE, 1, {11.40, 0, 0}, 11.40, 0},
    {"0,5", GV_EDIT_NONE, 1, {6.99, 0, 0}, 6.99, 2},
    {"0,5", GV_EDIT_P2P_LEVEL, 1, {7.78, 0, 0}, NAN, 2},
    {"7,9", GV_EDIT_NONE, 1, {73.31, 0, 0}, 73.31, 0},
    {"0,10", GV_EDIT_NONE, 1, {6.90, 0, 0}, 6.90, 2},
    {"0-4", GV_EDIT_NONE, 1, {11.17, 0, 0}, 6.98, 0},
    {"0-5", GV_EDIT_NONE, 2, {7.91, 6.75, 6.89}, NAN, 2},
    {"0-5", GV_EDIT_P2P_LEVEL, 1, {7.94, 0, 0}, NAN, 2},
    {"0-9", GV_EDIT_NONE, 2, {6.88, 6.63, 6.87}, NAN, 2},
    {"0-9", GV_EDIT_P2P_LEVEL, 1, {7.87, 0, 0}, NAN, 2},
    {"0-10", GV_EDIT_NONE, 2, {7.60, 7.61, 7.66}, 4.18, 3},
    {"0-10", GV_EDIT_P2P_LEVEL, 1, {7.54, 0, 0}, NAN, 3},
};
#define NPUBLISHED (int)(sizeof(published) / sizeof(published[0]))

static const struct gv_profile_variant *
variant(const struct gv_profile *p, int row, const struct gv_profile_group **group)
{
    gv_gpuset set = 0;
    assert_int_equal(gv_gpuset_parse(published[row].gpus, &set, NULL), 0);
    for (int g = 0; g < p->ngroups; g++)
        for (int v = 0; p->groups[g].gpus == set && v < p->groups[g].nvariants; v++)
            if (p->groups[g].variants[v].edit == published[row].edit) {
                *group = &p->groups[g];
                return &p->groups[g].variants[v];
            }
    fail_msg("no variant of %s", published[row].gpus);
    return NULL;
}

static void test_4028_groups(void **state)
{
    (void)state;
    struct gv_profile *p = read_4028();
    int variants = 0;
    for (int g = 0; g < p->ngroups; g++)
        variants += p->groups[g].nvariants;
    assert_int_equal(variants, NPUBLISHED);
    for (int row = 0; row < NPUBLISHED; row++) {
        const struct gv_profile_group *group;
        const struct gv_profile_variant *v = variant(p, row, &group);
        int n = 0;
        assert_int_equal(v->nruns, published[row].runs);
        for (int r = 0; r < v->nruns; r++)
            for (int s = 0; s < v->runs[r].count; s++)
                assert_true(v->runs[r].busbw_gbs[s] == published[row].samples[n++]);
        assert_true(n == 3 || published[row].samples[n] == 0);
        double algbw = v->runs[0].algbw_gbs;
        assert_true(algbw == published[row].algbw || (isnan(algbw) && isnan(published[row].algbw)));
        assert_int_equal(group->nshm_edges, published[row].shm_edges);
        assert_true(group->shm_edges_known);
        assert_int_equal(group->op, GV_OP_ALL_REDUCE);
        assert_true(group->bytes == 1u << 30);
    }
    assert_int_equal(p->policy.operations, GV_OP_BIT(GV_OP_ALL_REDUCE));
    assert_true(p->policy.min_gain == 0.03 && p->policy.max_loss == 0.05);
    gv_profile_free(p);
}

static void test_4028_paths(void **state)
{
    (void)state;
    static const struct {
        int from, to;
        enum gv_path_class path;
        enum gv_p2p p2p;
        double write, write_min, both, latency_max;
        int nvlinks;
    } rows[] = {
        {0, 1, GV_PATH_PIX, GV_P2P_VERIFIED, 13.2, 13.2, 25.13, 1.6, 0},
        {4, 0, GV_PATH_PIX, GV_P2P_VERIFIED, 13.2, 13.2, 25.13, 1.6, 0},
        {5, 9, GV_PATH_PIX, GV_P2P_VERIFIED, 13.2, 13.2, 25.13, 1.6, 0},
        {9, 8, GV_PATH_PIX, GV_P2P_VERIFIED, 13.2, 13.2, 25.13, 1.6, 0},
        {0, 5, GV_PATH_PHB, GV_P2P_VERIFIED, 10.28, 7.08, 19.71, 2.07, 0},
        {8, 0, GV_PATH_PHB, GV_P2P_VERIFIED, 10.28, 7.08, 19.71, 2.07, 0},
        {7, 9, GV_PATH_NVL, GV_P2P_VERIFIED, 96.845, 96.84, 193.355, 2.01, 4},
        {9, 7, GV_PATH_NVL, GV_P2P_VERIFIED, 96.845, 96.84, 193.355, 2.01, 4},
        {0, 10, GV_PATH_SYS, GV_P2P_REFUSED, NAN, NAN, NAN, 18.17, 0},
        {10, 9, GV_PATH_SYS, GV_P2P_REFUSED, NAN, NAN, NAN, 18.17, 0},
    };
    struct gv_profile *p = read_4028();
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        const struct gv_profile_path *path = gv_profile_path_of(p, rows[i].from, rows[i].to);
        assert_non_null(path);
        assert_int_equal(path->nccl_class, rows[i].path);
        assert_int_equal(gv_profile_p2p(p, rows[i].from, rows[i].to), rows[i].p2p);
        assert_int_equal(path->nvlinks, rows[i].nvlinks);
        assert_true(isnan(rows[i].write) == !path->write_gbs.count);
        if (path->write_gbs.count) {
            assert_true(path->write_gbs.median == rows[i].write);
            assert_true(path->write_gbs.min == rows[i].write_min);
            assert_true(path->both_ways_gbs.median == rows[i].both);
        }
        assert_true(path->latency_us.max == rows[i].latency_max);
        assert_int_equal(path->host_path_gbs.count, 0);
    }
    for (int a = 0; a < p->ngpus; a++)
        for (int b = 0; b < p->ngpus; b++)
            assert_true(!gv_profile_path_of(p, a, b) == (a == b));
    gv_profile_free(p);
}

static void test_4028_boards(void **state)
{
    (void)state;
    struct gv_profile *p = read_4028();
    assert_int_equal(p->ngpus, 11);
    assert_int_equal(p->match, GV_MATCH_SHAPE);
    assert_int_equal(p->provenance.kind, GV_PUBLISHED);
    int mib = 0;
    for (int i = 0; i < p->ngpus; i++)
        mib += p->gpus[i].memory_mib;
    assert_int_equal(mib, 336 * 1024);
    assert_true(gv_profile_island(p, 0) == 0x1f);
    assert_true(gv_profile_island(p, 9) == 0x3e0);
    assert_true(gv_profile_island(p, 10) == 0x400);
    assert_true(gv_profile_island(p, 11) == 0);
    assert_int_equal(p->gpus[10].pci_device, 0x1db3);
    assert_int_equal(p->gpus[10].power_limit_w, 150);
    assert_true(p->memory[0].copy_gbs.median == 804.21);
    assert_int_equal(p->nhost_links, 0);
    gv_profile_free(p);
}

/* A host program with a decimal comma neither changes what is read nor what is written. */
static void test_locale(void **state)
{
    (void)state;
    static const char *const names[] = {"de_DE.UTF-8", "de_DE.utf8", "fr_FR.UTF-8", "de_DE"};
    bool set = false;
    for (unsigned i = 0; i < sizeof(names) / sizeof(names[0]) && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]) != NULL;
    if (!set)
        skip();
    struct gv_profile *p = parse(full);
    assert_true(p->memory[0].copy_gbs.median == 804.21);
    round_trip(p);
    setlocale(LC_NUMERIC, "C");
    gv_profile_free(p);
}

static void test_hash_is_of_the_bytes(void **state)
{
    (void)state;
    struct gv_profile *a = parse(full), *b = parse(full);
    char text[sizeof(full) + 2];
    snprintf(text, sizeof(text), "%s\n", full);
    struct gv_profile *c = parse(text);
    assert_true(a->hash == b->hash && a->hash != c->hash && a->hash);
    assert_true(gv_profile_equal(a, c));
    gv_profile_free(a);
    gv_profile_free(b);
    gv_profile_free(c);
}

static void test_names(void **state)
{
    (void)state;
    unsigned bits = 0;
    struct gv_error err = {0};
    assert_int_equal(gv_ops_parse("AllReduce, AllGather", &bits, &err), 0);
    assert_int_equal(bits, GV_OP_BIT(GV_OP_ALL_REDUCE) | GV_OP_BIT(GV_OP_ALL_GATHER));
    assert_int_equal(gv_ops_parse("AllReduce,allgather", &bits, &err), -1);
    assert_non_null(strstr(err.text, "did you mean 'AllGather'?"));
    assert_int_equal(gv_ops_parse("", &bits, &err), -1);
    assert_int_equal(gv_ops_parse("AllReduce,", &bits, &err), -1);
    assert_int_equal(gv_op_from_name("AllReduc"), -2);
    assert_int_equal(gv_algo_from_name("any"), GV_ALGO_ANY);
    assert_int_equal(gv_proto_from_name("LL128"), GV_PROTO_LL128);
    assert_string_equal(gv_edit_name(GV_EDIT_P2P_LEVEL), "p2p-level");
    assert_string_equal(gv_algo_name(GV_ALGO_ANY), "any");
    assert_string_equal(gv_p2p_name(GV_P2P_STATES), "?");
}

static void each_key_documented(const struct gv_object *type, const char *text)
{
    for (int i = 0; i < type->nfields; i++) {
        char row[80];
        snprintf(row, sizeof(row), "| `%s` |", type->fields[i].key);
        assert_non_null(strstr(text, row));
        assert_true(type->fields[i].doc && strlen(type->fields[i].doc) > 8);
        if (type->fields[i].object)
            each_key_documented(type->fields[i].object, text);
    }
}

static void test_markdown(void **state)
{
    (void)state;
    struct gv_str text = {0};
    gv_profile_schema_markdown(&text);
    each_key_documented(&gv_object_profile, text.data);
    assert_non_null(strstr(text.data, "\n## groups[].variants[].runs[]\n"));
    assert_non_null(strstr(text.data, "Left out: `0.03`."));
    gv_str_free(&text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_round_trips),
        cmocka_unit_test(test_full_has_every_key),
        cmocka_unit_test(test_equal_sees_each_value),
        cmocka_unit_test(test_4028_groups),
        cmocka_unit_test(test_4028_paths),
        cmocka_unit_test(test_4028_boards),
        cmocka_unit_test(test_locale),
        cmocka_unit_test(test_hash_is_of_the_bytes),
        cmocka_unit_test(test_names),
        cmocka_unit_test(test_markdown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
