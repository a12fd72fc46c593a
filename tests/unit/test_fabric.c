/* The fabric model: what the flows of a table get when they run together, against the figures that
 * were published, and against sharing worked out by hand. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "testbench/fabric/gv_fabric.h"
#include "tests/gv_test.h"

static struct gv_fabric fabric;

enum kind { WRITE, READ, TO_HOST, TO_DEVICE, RING_P2P, RING_SHM, MEMORY };

struct flow_row {
    enum kind kind;
    int gpus[12], n; /* from, to; a ring: all of them */
    double gbs;
};

struct row {
    const char *what;
    struct flow_row flow[6];
    int n;
};

static const struct row rows[] = {
    {"PIX, one way", {{WRITE, {0, 1}, 2, 13.20}}, 1},
    {"PIX, both ways", {{WRITE, {0, 1}, 2, 12.565}, {WRITE, {1, 0}, 2, 12.565}}, 2},
    {"PHB, one way", {{WRITE, {0, 5}, 2, 10.28}}, 1},
    {"PHB, both ways", {{WRITE, {0, 5}, 2, 9.855}, {WRITE, {5, 0}, 2, 9.855}}, 2},
    {"NVLink, both ways", {{WRITE, {7, 9}, 2, 96.675}, {WRITE, {9, 7}, 2, 96.675}}, 2},
    {"two sources behind one switch share its uplink",
     {{WRITE, {0, 5}, 2, 6.60}, {WRITE, {1, 6}, 2, 6.60}},
     2},
    {"a third flow inside the switch takes what its own link has left",
     {{WRITE, {0, 5}, 2, 6.60}, {WRITE, {1, 6}, 2, 6.60}, {WRITE, {2, 3}, 2, 13.20}},
     3},
    {"one GPU's link is shared by its readers",
     {{READ, {1, 0}, 2, 6.60}, {READ, {2, 0}, 2, 6.60}},
     2},
    {"host link", {{TO_HOST, {0}, 1, 13.10}}, 1},
    {"five host links share one uplink",
     {{TO_HOST, {0}, 1, 2.64},
      {TO_HOST, {1}, 1, 2.64},
      {TO_HOST, {2}, 1, 2.64},
      {TO_HOST, {3}, 1, 2.64},
      {TO_HOST, {4}, 1, 2.64}},
     5},
    {"the switches do not share", {{TO_HOST, {0}, 1, 13.10}, {TO_HOST, {5}, 1, 13.10}}, 2},
    {"device memory", {{MEMORY, {6}, 1, 1017.25}}, 1},
    {"ring of two, PIX", {{RING_P2P, {0, 1}, 2, 11.28}}, 1},
    {"ring of two, PHB through host memory", {{RING_SHM, {0, 5}, 2, 6.90}}, 1},
    {"ring of two, PHB over P2P", {{RING_P2P, {0, 5}, 2, 7.86}}, 1},
    {"ring of two, NVLink", {{RING_P2P, {7, 9}, 2, 73.31}}, 1},
    {"ring of eleven by default", {{RING_SHM, {0, 1, 2, 3, 4, 5, 6, 7, 9, 8, 10}, 11, 7.61}}, 1},
    {"an idle NVLink pair beside changes nothing",
     {{RING_SHM, {0, 5}, 2, 6.90}, {RING_P2P, {7, 9}, 2, 73.31}},
     2},
};

/* A ring's edges: through host memory where the pair is across the host bridge or farther. */
static void add_ring(struct gv_flow *flow, const struct flow_row *r)
{
    for (int i = 0; i < r->n; i++) {
        int from = r->gpus[i], to = r->gpus[(i + 1) % r->n];
        bool far = gv_fabric_class(&fabric, from, to) >= GV_FABRIC_PHB;
        gv_flow_ring_edge(flow, &fabric, from, to, r->kind == RING_SHM && far);
    }
}

static void add(struct gv_flow *flow, const struct flow_row *r)
{
    switch (r->kind) {
    case WRITE:
        gv_flow_write(flow, &fabric, r->gpus[0], r->gpus[1], 1);
        break;
    case READ:
        gv_flow_read(flow, &fabric, r->gpus[0], r->gpus[1], 1);
        break;
    case TO_HOST:
        gv_flow_to_host(flow, &fabric, r->gpus[0], 1);
        break;
    case TO_DEVICE:
        gv_flow_to_device(flow, &fabric, r->gpus[0], 1);
        break;
    case MEMORY:
        gv_flow_memory(flow, &fabric, r->gpus[0], 1);
        break;
    default:
        add_ring(flow, r);
    }
}

static void test_shares(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct gv_flow flows[6];
        const struct gv_flow *list[6];
        double rates[6];
        for (int k = 0; k < rows[i].n; k++) {
            gv_flow_init(&flows[k]);
            add(&flows[k], &rows[i].flow[k]);
            list[k] = &flows[k];
        }
        gv_fabric_share(&fabric, list, rows[i].n, rates);
        for (int k = 0; k < rows[i].n; k++) {
            if (fabs(rates[k] - rows[i].flow[k].gbs) > 0.005)
                fail_msg(
                    "%s: flow %d gets %.3f, not %.3f", rows[i].what, k, rates[k],
                    rows[i].flow[k].gbs);
            gv_flow_finish(&flows[k]);
        }
    }
}

/* Whatever runs together: no resource is over its capacity, no flow over its cap, and none could be
 * faster without taking from another. */
static void test_any_flows(void **state)
{
    unsigned seed = 7;
    (void)state;
    for (int round = 0; round < 300; round++) {
        struct gv_flow flows[8];
        const struct gv_flow *list[8];
        double rates[8], used[4096] = {0};
        int n = 1 + rand_r(&seed) % 8;
        for (int k = 0; k < n; k++) {
            int from = rand_r(&seed) % 10, to = rand_r(&seed) % 10;
            gv_flow_init(&flows[k]);
            if (from == to)
                gv_flow_to_host(&flows[k], &fabric, from, 1 + k % 2);
            else
                gv_flow_write(&flows[k], &fabric, from, to, 1);
            list[k] = &flows[k];
        }
        gv_fabric_share(&fabric, list, n, rates);
        assert_true(gv_fabric_resources(&fabric) <= 4096);
        for (int k = 0; k < n; k++)
            for (int u = 0; u < flows[k].nuse; u++)
                used[flows[k].use[u].resource] += rates[k] * flows[k].use[u].weight;
        for (int r = 0; r < gv_fabric_resources(&fabric); r++)
            assert_true(used[r] <= gv_fabric_capacity(&fabric, r) * (1 + 1e-6));
        for (int k = 0; k < n; k++) {
            bool bound = rates[k] >= flows[k].cap_gbs * (1 - 1e-6);
            assert_true(rates[k] <= flows[k].cap_gbs * (1 + 1e-6));
            for (int u = 0; u < flows[k].nuse; u++) {
                int r = flows[k].use[u].resource;
                bound |= used[r] >= gv_fabric_capacity(&fabric, r) * (1 - 1e-6);
            }
            assert_true(bound);
            gv_flow_finish(&flows[k]);
        }
    }
}

static void test_bad_file(void **state)
{
    struct gv_fabric *f = malloc(sizeof(*f));
    struct gv_error err;
    (void)state;
    assert_int_equal(gv_fabric_read("/nonexistent/machine.yaml", f, &err), -1);
    assert_non_null(strstr(err.file, "nonexistent"));
    free(f);
}

static int setup(void **state)
{
    char path[4096];
    struct gv_error err = {0};
    (void)state;
    snprintf(
        path, sizeof(path), "%s/testbench/machines/4028/machine.yaml",
        gv_test_dir("GV_SOURCE_DIR"));
    int rc = gv_fabric_read(path, &fabric, &err);
    if (rc)
        print_error("%s\n", err.text);
    return rc;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_shares),
        cmocka_unit_test(test_any_flows),
        cmocka_unit_test(test_bad_file),
    };
    return cmocka_run_group_tests(tests, setup, NULL);
}
