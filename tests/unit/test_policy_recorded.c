/* Decisions of the policy on machines made by chance, as they were recorded: whoever changes a rule
 * sees which decisions it changes, and whoever changes none sees that none changed. A line of
 * data/policy_decisions.txt has the machine's number, the question, the decision in words, and a
 * hash over all else that is in the plan. GV_RECORD=1 writes the file anew; its diff is then to be
 * read. */
#include "tests/policy_machines.h"

#include "base/gv_str.h"

#define MACHINES 160
#define LINE 2048

static char file_name[1024];

static uint64_t hash(const char *text)
{
    uint64_t h = 14695981039346656037u;
    for (; *text; text++)
        h = (h ^ (unsigned char)*text) * 1099511628211u;
    return h;
}

/* Everything in the plan that `decision` does not say. */
static void details(const struct gv_plan *plan, struct gv_str *out)
{
    gv_str_addf(
        out, "%d %d %d %d %d %.6f %d %d|%s|", plan->nvb_disable, plan->veto_ll128, plan->level_pxb,
        plan->other_nccl, plan->thin, plan->gain, plan->slowest, plan->ring_measured, plan->reason);
    for (int i = 0; i < plan->nring; i++)
        gv_str_addf(
            out, "%d %d %d %d %.3f ", plan->ring[i], plan->edges[i].to, (int)plan->edges[i].path,
            (int)plan->edges[i].transport, plan->edges[i].gbs);
    for (int i = 0; i < plan->nrows; i++) {
        const struct gv_tuner_row *r = &plan->rows[i];
        gv_str_addf(
            out, "|%d %llu %llu %d %d %d %.6f", (int)r->op, (unsigned long long)r->min_bytes,
            (unsigned long long)r->max_bytes, (int)r->algorithm, (int)r->protocol, r->channels,
            r->gain);
    }
}

/* Pairs that a host found bad or did not verify. */
static void any_pairs(const struct gv_profile *p, unsigned percent, bool set, gv_gpuset *pairs)
{
    for (int a = 0; a < p->ngpus; a++)
        for (int b = 0; b < p->ngpus; b++)
            pairs[a] |= a != b && in_percent(percent) == set ? GV_GPU_BIT(b) : 0;
}

static void decision(const struct gv_policy_in *in, uint64_t number, struct gv_str *out)
{
    struct gv_plan plan;
    struct gv_str more = {0};
    char gpus[256], edits[4096];
    gv_policy_decide(in, &plan);
    details(&plan, &more);
    assert_false(more.failed);
    gv_str_addf(
        out, "%llu %s ops %u nccl %d%s%s%s: %s %s [%s] %d rows %016llx\n",
        (unsigned long long)number, gv_gpuset_format(in->gpus, gpus, sizeof(gpus)), in->operations,
        in->nccl_version, in->verified ? " verified" : "", in->bad ? " bad" : "",
        in->one_node ? "" : " nodes?", gv_transport_name(plan.transport),
        gv_evidence_name(plan.evidence), gv_check_edits(&plan, edits, sizeof(edits)), plan.nrows,
        (unsigned long long)hash(more.data));
    gv_str_free(&more);
    gv_plan_finish(&plan);
}

static void of_machine(uint64_t number, struct gv_str *out)
{
    static const int versions[] = {22809, 22809, 0, 22203, 23004};
    static const unsigned operations[] = {
        0, 0, 1 << GV_OP_ALL_REDUCE, 1 << GV_OP_ALL_GATHER,
        1 << GV_OP_ALL_REDUCE | 1 << GV_OP_ALL_TO_ALL};
    struct gv_build *build = any_machine(number, number % 2);
    const struct gv_profile *p = &build->profile;
    for (int i = 0; i < 8; i++) {
        gv_gpuset verified[GV_MAX_GPUS] = {0}, bad[GV_MAX_GPUS] = {0};
        struct gv_policy_in in = {
            .profile = p,
            .gpus = communicator(p, i < 6 ? i : p->ngroups),
            .one_node = !in_percent(2),
            .operations = operations[chance(5)],
            .nccl_version = versions[chance(5)],
            .nranks = in_percent(2) ? 3 : 0,
            .nnodes = in_percent(2) ? 2 : 0};
        if (in_percent(15)) {
            any_pairs(p, 3, false, verified);
            in.verified = verified;
        }
        if (in_percent(15)) {
            any_pairs(p, 1, true, bad);
            in.bad = bad;
        }
        decision(&in, number, out);
    }
    gv_str_addf(
        out, "%llu process: level PXB %d %d, chains %d\n", (unsigned long long)number,
        gv_policy_level_pxb(p, 22809, NULL), gv_policy_level_pxb(p, 22203, NULL),
        gv_profile_nvlink_chains(p));
    gv_build_free(build);
}

static void compare(FILE *file, const char *now)
{
    char line[LINE * 4];
    for (int number = 1; *now; number++) {
        size_t n = strcspn(now, "\n") + 1;
        if (!fgets(line, sizeof(line), file) || strlen(line) != n || strncmp(line, now, n))
            fail_msg(
                "%s:%d: another decision (GV_RECORD=1 records it):\n%.*sit was\n%s", file_name,
                number, (int)n, now, line);
        now += n;
    }
    assert_null(fgets(line, sizeof(line), file));
}

static void recorded(void **state)
{
    (void)state;
    struct gv_str now = {0};
    bool record = getenv("GV_RECORD") != NULL;
    snprintf(
        file_name, sizeof(file_name), "%s/tests/unit/data/policy_decisions.txt",
        gv_test_dir("GV_SOURCE_DIR"));
    for (uint64_t number = 5000; number < 5000 + MACHINES; number++)
        of_machine(number, &now);
    assert_false(now.failed);
    FILE *file = fopen(file_name, record ? "w" : "r");
    if (!file)
        fail_msg("cannot open %s", file_name);
    if (record)
        assert_int_equal(fwrite(now.data, 1, now.len, file), now.len);
    else
        compare(file, now.data);
    fclose(file);
    gv_str_free(&now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(recorded)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
