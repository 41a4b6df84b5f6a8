#include "topology/topology.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

char *dt_topology_cache(void)
{
    const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");
    if (cache && cache[0] == '/')
        return dt_xasprintf("%s/dt-tune/topology", cache);
    return home && home[0] == '/' ? dt_xasprintf("%s/.cache/dt-tune/topology", home) : NULL;
}

static uint64_t hash(uint64_t h, const char *text)
{
    for (const char *c = text; *c; c++)
        h = (h ^ (unsigned char)*c) * 0x100000001b3;
    return h;
}

void dt_topology_key(const struct dt_node_class *k, char key[17])
{
    char *text = dt_xasprintf("cpus=%zu\nsockets=%zu\ncores=%zu\nthreads=%zu\nmem=%llu\ngres=%s\n",
                              k->cpus, k->sockets, k->cores, k->threads,
                              (unsigned long long)k->mem_mib, k->gres ? k->gres : "");
    snprintf(key, 17, "%016llx", (unsigned long long)hash(0xcbf29ce484222325, text));
    free(text);
}

static char *in_folder(const char *folder, const char *name)
{
    char *path = dt_xasprintf("%s/%s.xml", folder, name);
    if (access(path, R_OK) == 0)
        return path;
    free(path);
    return NULL;
}

/* Whether a file's name, without its .xml, is a list of nodes with this one. */
static bool is_listed(const char *file, const char *node)
{
    struct dt_strv names = DT_STRV_INIT;
    size_t n = strlen(file);
    bool found = false;
    if (n < 5 || strcmp(file + n - 4, ".xml") != 0 || !strchr(file, '['))
        return false;
    char *list = dt_xstrndup(file, n - 4);
    if (dt_hostlist_expand(list, &names, NULL) == 0)
        for (size_t i = 0; i < names.n && !found; i++)
            found = strcmp(names.v[i], node) == 0;
    dt_strv_free(&names);
    free(list);
    return found;
}

static char *by_list(const char *folder, const char *node)
{
    DIR *d = opendir(folder);
    struct dirent *entry;
    char *path = NULL;
    while (d && !path && (entry = readdir(d)))
        if (is_listed(entry->d_name, node))
            path = dt_xasprintf("%s/%s", folder, entry->d_name);
    if (d)
        closedir(d);
    return path;
}

char *dt_topology_find(const char *given, const char *cache, const char *node, const char *key)
{
    char *path = given && node ? in_folder(given, node) : NULL;
    if (!path && given && node)
        path = by_list(given, node);
    if (!path && given && key)
        path = in_folder(given, key);
    if (!path && cache && key)
        path = in_folder(cache, key);
    return path;
}

bool dt_topology_unknown(const struct dt_cluster *c)
{
    char *cache = dt_topology_cache();
    bool unknown = false;
    for (size_t i = 0; cache && i < c->n && !unknown; i++) {
        char key[17];
        dt_topology_key(&c->classes[i], key);
        char *path = dt_topology_find(NULL, cache, NULL, key);
        unknown = !path;
        free(path);
    }
    free(cache);
    return unknown;
}
