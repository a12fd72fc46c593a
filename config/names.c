#include "config/names.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "base/gv_nearest.h"
#include "config/gv_profile.h"

#define TABLE(name, first_value, ...)                                                              \
    static const char *const name##_words[] = {__VA_ARGS__};                                       \
    const struct gv_names gv_names_##name = {                                                      \
        name##_words, sizeof(name##_words) / sizeof(name##_words[0]), first_value}

TABLE(
    op, 0, "Broadcast", "Reduce", "AllGather", "ReduceScatter", "AllReduce", "SendRecv",
    "AllToAll");
TABLE(
    algo, GV_ALGO_ANY, "any", "TREE", "RING", "COLLNET_DIRECT", "COLLNET_CHAIN", "NVLS",
    "NVLS_TREE", "PAT");
TABLE(proto, GV_PROTO_ANY, "any", "LL", "LL128", "SIMPLE");
TABLE(provenance, 0, "published", "cuda", "imported", "virtual");
TABLE(match, 0, "uuid", "bus-id", "shape");
TABLE(p2p, 0, "unverified", "verified", "refused", "corrupt", "hung", "one-way");
TABLE(path_class, 0, "unknown", "NVL", "PIX", "PXB", "PHB", "SYS");
TABLE(edit, 0, "none", "lend", "bridge", "separate", "p2p-level");
TABLE(handoff_verdict, 0, "tie", "gain", "loss");

#define COUNT_IS(name, count)                                                                      \
    _Static_assert(sizeof(name##_words) / sizeof(name##_words[0]) == (count), #name)
COUNT_IS(op, GV_OP_COUNT);
COUNT_IS(algo, GV_ALGO_COUNT + 1);
COUNT_IS(proto, GV_PROTO_COUNT + 1);
COUNT_IS(provenance, GV_VIRTUAL + 1);
COUNT_IS(match, GV_MATCH_SHAPE + 1);
COUNT_IS(p2p, GV_P2P_STATES);
COUNT_IS(path_class, GV_PATH_CLASSES);
COUNT_IS(edit, GV_EDIT_KINDS);
COUNT_IS(handoff_verdict, GV_HANDOFF_VERDICTS);

const char *gv_names_word(const struct gv_names *names, int value)
{
    int i = value - names->first;
    return i >= 0 && i < names->n ? names->words[i] : "?";
}

int gv_names_value(const struct gv_names *names, const char *word)
{
    for (int i = 0; i < names->n; i++)
        if (!strcmp(names->words[i], word))
            return names->first + i;
    return -2;
}

const char *gv_names_nearest(const struct gv_names *names, const char *word)
{
    for (int i = 0; i < names->n; i++)
        if (!strcasecmp(names->words[i], word))
            return names->words[i];
    return gv_nearest(word, names->words, names->n);
}

const char *gv_op_name(enum gv_op op)
{
    return gv_names_word(&gv_names_op, (int)op);
}

const char *gv_handoff_verdict_name(enum gv_handoff_verdict verdict)
{
    return gv_names_word(&gv_names_handoff_verdict, (int)verdict);
}

const char *gv_algo_name(enum gv_algo algo)
{
    return gv_names_word(&gv_names_algo, (int)algo);
}

const char *gv_proto_name(enum gv_proto proto)
{
    return gv_names_word(&gv_names_proto, (int)proto);
}

const char *gv_p2p_name(enum gv_p2p state)
{
    return gv_names_word(&gv_names_p2p, (int)state);
}

const char *gv_path_class_name(enum gv_path_class c)
{
    return gv_names_word(&gv_names_path_class, (int)c);
}

const char *gv_edit_name(enum gv_edit_kind kind)
{
    return gv_names_word(&gv_names_edit, (int)kind);
}

const char *gv_provenance_name(enum gv_provenance_kind kind)
{
    return gv_names_word(&gv_names_provenance, (int)kind);
}

const char *gv_match_name(enum gv_match match)
{
    return gv_names_word(&gv_names_match, (int)match);
}

int gv_op_from_name(const char *name)
{
    return gv_names_value(&gv_names_op, name);
}

int gv_algo_from_name(const char *name)
{
    return gv_names_value(&gv_names_algo, name);
}

int gv_proto_from_name(const char *name)
{
    return gv_names_value(&gv_names_proto, name);
}

int gv_edit_from_name(const char *name)
{
    return gv_names_value(&gv_names_edit, name);
}

/* One word of the list; blanks around it are dropped. Returns the operation or -2. */
static int op_of(const char *word, size_t len, char copy[32])
{
    while (len && isspace((unsigned char)*word)) {
        word++;
        len--;
    }
    while (len && isspace((unsigned char)word[len - 1]))
        len--;
    snprintf(copy, 32, "%.*s", (int)(len < 31 ? len : 31), word);
    return gv_op_from_name(copy);
}

int gv_ops_parse(const char *text, unsigned *out_bits, struct gv_error *err)
{
    unsigned bits = 0;
    for (const char *word = text;; word++) {
        size_t len = strcspn(word, ",");
        char copy[32];
        int op = op_of(word, len, copy);
        if (op < 0) {
            const char *near = gv_names_nearest(&gv_names_op, copy);
            return gv_error_set(
                err, "operation '%s' is not known%s%s%s; write them as in AllReduce,AllGather",
                copy, near ? "; did you mean '" : "", near ? near : "", near ? "'?" : "");
        }
        bits |= GV_OP_BIT(op);
        word += len;
        if (!*word)
            break;
    }
    *out_bits = bits;
    return 0;
}
