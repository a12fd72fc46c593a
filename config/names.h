/* The words that stand for enum values in a profile: one table each, for reader, writer and the
 * public gv_*_name functions. */
#ifndef GV_CONFIG_NAMES_H
#define GV_CONFIG_NAMES_H

/* words[i] is the name of the value first + i. */
struct gv_names {
    const char *const *words;
    int n, first;
};

extern const struct gv_names gv_names_op, gv_names_algo, gv_names_proto, gv_names_provenance,
    gv_names_match, gv_names_p2p, gv_names_path_class, gv_names_edit, gv_names_handoff_verdict;

/* The name of `value`, or "?" where the table has none. */
const char *gv_names_word(const struct gv_names *names, int value);
/* The value of `word`, or -2. */
int gv_names_value(const struct gv_names *names, const char *word);
/* The name nearest to `word`, or NULL. */
const char *gv_names_nearest(const struct gv_names *names, const char *word);

#endif
