/* What NCCL is answered when it asks for a variable. One place for the env plugin and for the
 * preloaded getenv. */
#ifndef GV_ANSWER_H
#define GV_ANSWER_H

enum gv_asker {
    GV_ASKER_ENV_PLUGIN, /* 2.28.7 and later: every look-up of NCCL's comes here */
    GV_ASKER_PRELOAD     /* any program's getenv of a name that begins with NCCL_ */
};

/* `user` is what the environment holds (NULL: not set), `caller` an address in the object that
 * asks. Returns that, or an answer of ours, which lives until the process ends or, for
 * NCCL_TOPO_FILE, as gv_comm_file says. */
const char *gv_answer(enum gv_asker asker, const void *caller, const char *name, const char *user);

/* Whether the preloaded getenv was asked, so that an init call which we do not see bypassed it. */
int gv_answer_preloaded(void);

/* Whether `value` of NCCL_TUNER_PLUGIN (or NCCL_ENV_PLUGIN) names this library. */
int gv_answer_names_us(const char *value);

/* The name under which the net hook presents itself: what NCCL_NET asks for, or "gv100". */
const char *gv_answer_net_name(void);

#endif
