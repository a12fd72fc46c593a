/* Folders by environment and by where this code lies. */
#ifndef GV_CONFIG_FOLDERS_H
#define GV_CONFIG_FOLDERS_H

/* $`xdg`/gv100, else $HOME/`below_home`/gv100. Fills out[PATH_MAX] and returns 0; -1: neither set.
 */
int gv_folder_of_user(const char *xdg, const char *below_home, char *out);

/* The *.yaml files of a folder, sorted by name: `n` names for gv_folder_free. 0, or -1: there is no
 * such folder. Hidden files are passed over; at most 256 are listed. */
int gv_folder_list(const char *dir, char ***names, int *n);
void gv_folder_free(char **names, int n);

#endif
