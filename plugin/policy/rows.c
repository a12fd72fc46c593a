#include "plugin/policy/rows.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

/* Choices of one operation that are looked at: every algorithm and protocol with a few channel
 * counts. */
#define MAX_CHOICES 256

struct choice {
    enum gv_algo algorithm;
    enum gv_proto protocol;
    int channels;
};

/* All that is asked of the profile for one operation. */
struct table {
    const struct gv_facts *facts;
    enum gv_op op;
    struct gv_variant_key transport; /* variants of this edit count */
    const struct gv_candidate *candidate;
    bool no_ll128;
    uint64_t *sizes;
    int nsizes;
    struct choice choices[MAX_CHOICES];
    int nchoices;
};

bool gv_same_nccl(const char *nccl, int nccl_version)
{
    int major, minor;
    if (sscanf(nccl, "%d.%d", &major, &minor) != 2)
        return false;
    return major == nccl_version / 10000 && minor == nccl_version / 100 % 100;
}

static int by_choice(const void *a, const void *b)
{
    const struct choice *x = a, *y = b;
    if (x->algorithm != y->algorithm)
        return (int)x->algorithm - (int)y->algorithm;
    if (x->protocol != y->protocol)
        return (int)x->protocol - (int)y->protocol;
    return x->channels - y->channels;
}

static struct gv_variant_key key_of(const struct gv_variant_key *transport, struct choice choice)
{
    struct gv_variant_key key = *transport;
    key.algorithm = choice.algorithm;
    key.protocol = choice.protocol;
    key.channels = choice.channels;
    return key;
}

/* A tuner sets an algorithm with a protocol or neither, so half a choice is none. */
static void add_choice(struct table *table, const struct gv_profile_variant *variant)
{
    struct choice choice = {variant->algorithm, variant->protocol, variant->channels};
    struct choice own = {GV_ALGO_ANY, GV_PROTO_ANY, 0};
    struct gv_variant_key key = key_of(&table->transport, choice);
    if (!gv_variant_is(variant, &key) || !by_choice(&choice, &own))
        return;
    if ((choice.algorithm == GV_ALGO_ANY) != (choice.protocol == GV_PROTO_ANY))
        return;
    if (table->no_ll128 && choice.protocol == GV_PROTO_LL128)
        return;
    for (int i = 0; i < table->nchoices; i++)
        if (!by_choice(&table->choices[i], &choice))
            return;
    if (table->nchoices < MAX_CHOICES)
        table->choices[table->nchoices++] = choice;
}

static void find_choices(struct table *table)
{
    const struct gv_facts *facts = table->facts;
    int end;
    for (int i = gv_facts_groups(facts, facts->in->gpus, table->op, &end); i < end; i++) {
        const struct gv_profile_group *group = facts->group[i];
        for (int v = 0; v < group->nvariants; v++)
            add_choice(table, &group->variants[v]);
    }
    qsort(table->choices, (size_t)table->nchoices, sizeof(*table->choices), by_choice);
}

static struct gv_comparison
choice_at(const struct table *table, uint64_t bytes, struct choice choice)
{
    struct gv_variant_key key = key_of(&table->transport, choice);
    return gv_measured(
        table->facts, table->facts->in->gpus, table->op, bytes, &table->transport, &key);
}

/* The best choice at one size; NULL where none gains. Of choices that rule 1 cannot tell apart the
 * one with the higher median is taken: either gains. */
static const struct choice *best_at(const struct table *table, uint64_t bytes, double *gain)
{
    const struct choice *best = NULL;
    for (int i = 0; i < table->nchoices; i++) {
        struct gv_comparison now = choice_at(table, bytes, table->choices[i]);
        if (now.verdict != GV_GAIN || (best && now.gain <= *gain))
            continue;
        best = &table->choices[i];
        *gain = now.gain;
    }
    return best;
}

static uint64_t last_byte(const struct table *table, int i, struct choice choice)
{
    if (i + 1 == table->nsizes)
        return table->sizes[i];
    struct gv_comparison next = choice_at(table, table->sizes[i + 1], choice);
    return gv_loses(table->facts, &next) ? table->sizes[i] : table->sizes[i + 1] - 1;
}

static bool merge(struct gv_plan *plan, const struct gv_tuner_row *row)
{
    struct gv_tuner_row *last = plan->nrows ? &plan->rows[plan->nrows - 1] : NULL;
    if (!last || last->op != row->op || last->max_bytes + 1 != row->min_bytes ||
        last->algorithm != row->algorithm || last->protocol != row->protocol ||
        last->channels != row->channels)
        return false;
    last->max_bytes = row->max_bytes;
    if (row->gain < last->gain)
        last->gain = row->gain;
    return true;
}

void gv_rows_append(struct gv_plan *plan, const struct gv_tuner_row *row)
{
    if (plan->nrows == GV_MAX_ROWS)
        return;
    struct gv_tuner_row *rows = realloc(plan->rows, ((size_t)plan->nrows + 1) * sizeof(*rows));
    if (!rows)
        return;
    plan->rows = rows;
    plan->rows[plan->nrows++] = *row;
}

static void fill_op(struct table *table, struct gv_plan *plan)
{
    for (int i = 0; i < table->nsizes; i++) {
        double gain = NAN;
        const struct choice *best = best_at(table, table->sizes[i], &gain);
        if (!best)
            continue;
        struct gv_tuner_row row = {
            .op = table->op,
            .min_bytes = table->sizes[i],
            .max_bytes = last_byte(table, i, *best),
            .algorithm = best->algorithm,
            .protocol = best->protocol,
            .channels = best->channels,
            .gain = gain,
        };
        if (!merge(plan, &row))
            gv_rows_append(plan, &row);
    }
}

/* Whether any variant that names a choice was measured under this edit. */
static bool has_choices(struct table *table)
{
    table->nchoices = 0;
    find_choices(table);
    return table->nchoices > 0;
}

/* The edit as it is applied first; NCCL_P2P_LEVEL's variants stand in for it. */
static void choose_transport_key(struct table *table)
{
    if (has_choices(table) || !table->candidate)
        return;
    if (table->candidate->applied != GV_EDIT_LEND && table->candidate->applied != GV_EDIT_BRIDGE)
        return;
    table->transport = gv_plain_key(GV_EDIT_P2P_LEVEL);
    if (!has_choices(table))
        table->transport = table->candidate->key;
}

void gv_rows_fill(
    const struct gv_facts *facts, const struct gv_candidate *transport, bool no_ll128,
    struct gv_plan *plan)
{
    /* a tuner is not asked about send and receive */
    for (enum gv_op op = GV_OP_BROADCAST; op < GV_OP_SEND_RECV; op++) {
        struct table table = {
            .facts = facts,
            .op = op,
            .transport = transport ? transport->key : gv_plain_key(GV_EDIT_NONE),
            .candidate = transport,
            .no_ll128 = no_ll128,
        };
        choose_transport_key(&table);
        table.nsizes = gv_sizes(facts, facts->in->gpus, table.op, &table.sizes);
        fill_op(&table, plan);
        free(table.sizes);
    }
}
