/* "Did you mean ...": the known word that is closest to one that is not known. */
#ifndef GV_NEAREST_H
#define GV_NEAREST_H

/* `words` is a list of `n` words; NULL entries are passed over. Returns the word with the smallest
 * edit distance if it is near enough to help (at most a third of the longer word's letters, at
 * least 2), else NULL. The result is one of `words`. */
const char *gv_nearest(const char *word, const char *const *words, int n);

#endif
