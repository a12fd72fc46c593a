/* What a variable does to the plugin: a table of rules, and the files that variables name. */
#include <stdio.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>

#include "plugin/topology/gv_topology.h"
#include "profiler/doctor/gv_doctor.h"

enum when { SET, ONE, NOT_ONE, OURS, THEIRS, A_NET_PLUGIN, A_NET };

struct rule {
    const char *name;
    enum when when;
    enum gv_step_verdict verdict;
    const char *effect, *next;
};

static const char wins[] = "wins over the profile: every communicator keeps the transports of NCCL "
                           "under this setting";
static const char unset[] = "take it away for jobs that run under the plugin";
static const char no_net[] = "without a proof of one node, transports stay NCCL's default";
static const char single[] = "set GV100_SINGLE_NODE=1 for jobs of one node";
static const char measured_without[] =
    "is used by NCCL as it is; the profile's figures were measured without it";

/* The first rule that holds speaks. The plugin's own part of these rules is in plugin/core
 * (answer.c, decision.c, proof.c, state.c). */
static const struct rule rules[] = {
    {"GV100_DISABLE", ONE, GV_VERDICT_NO, "switches the plugin off", "unset GV100_DISABLE"},
    {"GV100_ASSUME_VERIFIED", ONE, GV_VERDICT_NOTE, "P2P is believed without a check on this host",
     "run `gv100 verify` instead"},
    {"NCCL_P2P_LEVEL", SET, GV_VERDICT_NO, wins, unset},
    {"NCCL_P2P_DISABLE", SET, GV_VERDICT_NO, wins, unset},
    {"NCCL_P2P_DIRECT_DISABLE", SET, GV_VERDICT_NO, wins, unset},
    {"NCCL_SHM_DISABLE", SET, GV_VERDICT_NO, wins, unset},
    {"NCCL_GRAPH_FILE", SET, GV_VERDICT_NO,
     "wins over the profile, and fails every communicator that has other GPUs than the file",
     unset},
    {"NCCL_TOPO_FILE", SET, GV_VERDICT_NOTE, "is the tree that the plugin's edits are made in",
     NULL},
    {"NCCL_ENV_PLUGIN", OURS, GV_VERDICT_OK, "names this plugin", NULL},
    {"NCCL_ENV_PLUGIN", THEIRS, GV_VERDICT_WARN,
     "brings another env plugin: from NCCL 2.28.7 on this one is not asked", unset},
    {"NCCL_TUNER_PLUGIN", OURS, GV_VERDICT_OK, "names this plugin", NULL},
    {"NCCL_TUNER_PLUGIN", THEIRS, GV_VERDICT_WARN,
     "brings another tuner: it chooses algorithm and protocol, transports stay with this plugin",
     unset},
    {"NCCL_NET_PLUGIN", A_NET_PLUGIN, GV_VERDICT_WARN, no_net, single},
    {"NCCL_NET", A_NET, GV_VERDICT_WARN, no_net, single},
    {"NCCL_ALGO", SET, GV_VERDICT_WARN,
     "wins: no algorithm or protocol of the profile is used; transports are", unset},
    {"NCCL_PROTO", SET, GV_VERDICT_WARN,
     "wins: no algorithm or protocol of the profile is used; transports are", unset},
    {"NCCL_NVB_DISABLE", NOT_ONE, GV_VERDICT_WARN,
     "plans that lend one GPU two links need 1 here, and stay default", unset},
    {"NCCL_HOSTID", SET, GV_VERDICT_WARN,
     "ranks with different ids count as different hosts and keep NCCL's default", unset},
    {"NCCL_MIN_NCHANNELS", SET, GV_VERDICT_NOTE, measured_without, NULL},
    {"NCCL_MAX_NCHANNELS", SET, GV_VERDICT_NOTE, measured_without, NULL},
    {"NCCL_MIN_CTAS", SET, GV_VERDICT_NOTE, measured_without, NULL},
    {"NCCL_MAX_CTAS", SET, GV_VERDICT_NOTE, measured_without, NULL},
    {"NCCL_NTHREADS", SET, GV_VERDICT_NOTE, measured_without, NULL},
    {"NCCL_BUFFSIZE", SET, GV_VERDICT_NOTE, measured_without, NULL},
    {"NCCL_LL128_BUFFSIZE", SET, GV_VERDICT_NOTE, measured_without, NULL},
    {"NCCL_LL_BUFFSIZE", SET, GV_VERDICT_NOTE, measured_without, NULL},
};

/* As gv_answer_names_us has it. */
static bool names_us(const char *value)
{
    const char *slash = strrchr(value, '/'), *base = slash ? slash + 1 : value;
    return !strcmp(base, "gv100") || !strcmp(base, "libnccl-tuner-gv100.so") ||
           !strcmp(base, "libnccl-env-gv100.so");
}

static bool holds(enum when when, const char *value)
{
    bool one = !strcmp(value, "1");
    switch (when) {
    case ONE:
        return one;
    case NOT_ONE:
        return *value && !one;
    case OURS:
        return *value && names_us(value);
    case THEIRS:
        return *value && !names_us(value);
    case A_NET_PLUGIN:
        return *value && !names_us(value) && strcasecmp(value, "none") != 0;
    case A_NET:
        return *value && strcasecmp(value, "IB") != 0 && strcasecmp(value, "Socket") != 0;
    case SET:
        break;
    }
    return *value;
}

static void topology_file(const struct gv_variable *v, struct gv_findings *findings)
{
    struct gv_error err = {0};
    if (access(v->value, R_OK)) {
        gv_finding_add(
            findings, "settings", GV_VERDICT_WARN, "correct the path or unset NCCL_TOPO_FILE",
            "NCCL_TOPO_FILE=%.200s cannot be read: %m; NCCL then detects the machine by itself, "
            "without a word",
            v->value);
        return;
    }
    struct gv_tree *tree = gv_tree_from_file(v->value, &err);
    if (!tree)
        gv_finding_error(
            findings, "settings", GV_VERDICT_NO,
            "correct the file or unset NCCL_TOPO_FILE: a rank that reads it fails, and the others "
            "hang",
            &err);
    gv_tree_free(tree);
}

static void graph_file(
    const struct gv_variable *v, const struct gv_machine *machine, struct gv_findings *findings)
{
    struct gv_error err = {0};
    if (gv_graph_file_check(v->value, machine->ngpus, &err))
        gv_finding_error(
            findings, "settings", GV_VERDICT_NO,
            "every job fails with this file: correct it or unset NCCL_GRAPH_FILE", &err);
}

static const struct rule *rule_for(const struct gv_variable *v)
{
    for (size_t i = 0; i < sizeof(rules) / sizeof(rules[0]); i++)
        if (!strcmp(rules[i].name, v->name) && holds(rules[i].when, v->value))
            return &rules[i];
    return NULL;
}

static bool is_own(const struct gv_variable *v)
{
    return !strncmp(v->name, "GV100_", 6);
}

void gv_doctor_variables(
    const struct gv_variables *all, const struct gv_machine *machine, struct gv_findings *findings)
{
    for (int i = 0; i < all->n; i++) {
        const struct gv_variable *v = &all->list[i];
        const struct rule *r = rule_for(v);
        struct gv_finding *f = gv_finding_add(
            findings, "settings", r ? r->verdict : GV_VERDICT_OK, r ? r->next : NULL,
            "%s=%.160s %s", v->name, v->value,
            r           ? r->effect
            : is_own(v) ? "is a setting of gv100's own"
                        : "does not touch the plugin");
        snprintf(f->file, sizeof(f->file), "%s", v->file);
        f->line = v->line;
        if (!strcmp(v->name, "NCCL_TOPO_FILE") && *v->value)
            topology_file(v, findings);
        if (!strcmp(v->name, "NCCL_GRAPH_FILE") && *v->value)
            graph_file(v, machine, findings);
    }
}
