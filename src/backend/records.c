#include "backend/slurm_private.h"

#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static struct json_object *read_record(const char *dir, const char *name)
{
    char *path = dt_xasprintf("%s/%s", dir, name);
    char *text = dt_read_file(path, 1024 * 1024, NULL, NULL);
    struct json_object *o = text ? dt_json_parse(text, path, NULL) : NULL;
    free(text);
    free(path);
    return o;
}

static char *failure_text(struct json_object *failed)
{
    struct dt_buf b = DT_BUF_INIT;
    struct json_object *lines = dt_json_get(failed, "lines");
    if (!failed)
        return NULL;
    dt_buf_addf(&b, "%s %ld on %s: ", dt_json_str(failed, "role", "task"),
                (long)dt_json_int(failed, "rank", 0), dt_json_str(failed, "node", "?"));
    if (dt_json_int(failed, "signal", 0))
        dt_buf_addf(&b, "killed by signal %ld", (long)dt_json_int(failed, "signal", 0));
    else
        dt_buf_addf(&b, "exit code %ld", (long)dt_json_int(failed, "exit_code", 0));
    for (size_t i = 0; i < dt_json_count(lines); i++)
        dt_buf_addf(&b, "\n%s", json_object_get_string(dt_json_at(lines, i)));
    return dt_buf_take(&b);
}

static char *notes_of(struct json_object *end, double suspended)
{
    struct dt_buf b = DT_BUF_INIT;
    struct json_object *lines = dt_json_get(end, "notes");
    for (size_t i = 0; i < dt_json_count(lines); i++)
        dt_buf_addf(&b, "%s%s", i ? "\n" : "", json_object_get_string(dt_json_at(lines, i)));
    if (suspended > 0)
        dt_buf_addf(&b,
                    "%ssuspended for %.0f s: its run time is without them, speeds that its metrics "
                    "tell are not",
                    b.len ? "\n" : "", suspended);
    return b.s;
}

#define LAST_LINES 10
#define LAST_BYTES 4096

char *dt_records_last_lines(const char *dir)
{
    char *path = dt_xasprintf("%s/output.log", dir), text[LAST_BYTES + 1];
    int fd = dt_open_regular(path);
    size_t n = 0, lines = 0;
    free(path);
    if (fd < 0)
        return NULL;
    off_t end = lseek(fd, 0, SEEK_END);
    ssize_t got = pread(fd, text, LAST_BYTES, end > LAST_BYTES ? end - LAST_BYTES : 0);
    n = got > 0 ? (size_t)got : 0;
    close(fd);
    while (n && text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    size_t from = n;
    for (; from && (text[from - 1] != '\n' || ++lines < LAST_LINES); from--)
        ;
    return n ? dt_xstrdup(text + from) : NULL;
}

bool dt_records_out_of_memory(const char *dir)
{
    static const char *const words[] = {"oom_kill event", "oom-kill event", "Out Of Memory",
                                        "Exceeded step memory limit", "Exceeded job memory limit"};
    char *lines = dt_records_last_lines(dir);
    bool found = false;
    for (size_t i = 0; lines && i < sizeof(words) / sizeof(*words); i++)
        found |= strstr(lines, words[i]) != NULL;
    free(lines);
    return found;
}

void dt_records_read(const char *dir, struct dt_records *r)
{
    struct json_object *start = read_record(dir, "start.json"), *end = read_record(dir, "end.json");
    double suspended = dt_json_num(end, "suspended_s", 0);
    *r = (struct dt_records){
        .started = start || end,
        .ended = end != NULL,
        .told = dt_json_bool(end, "told", false),
        .tasks_told = dt_json_bool(end, "tasks_told", false),
        .orphan = dt_json_bool(end, "orphan", false),
        .start = dt_json_num(end ? end : start, "start", NAN),
        .launch = dt_json_num(end, "launch", NAN),
        .end = dt_json_num(end, "end", NAN),
        .exit_code = (int)dt_json_int(end, "exit_code", 0),
        .signal = (int)dt_json_int(end, "signal", 0),
        .failed = failure_text(dt_json_get(end, "failed")),
        .notes = notes_of(end, suspended),
    };
    r->run_s = r->end - r->start - suspended;
    if (end && !r->failed && (r->exit_code || r->signal))
        r->failed = dt_records_last_lines(dir);
    json_object_put(start);
    json_object_put(end);
}

char *dt_records_node(const char *dir)
{
    struct json_object *start = read_record(dir, "start.json");
    const char *node = dt_json_str(start, "node", "");
    char *copy = *node ? dt_xstrdup(node) : NULL;
    json_object_put(start);
    return copy;
}

uint32_t dt_records_job(const char *dir)
{
    struct json_object *start = read_record(dir, "start.json");
    uint32_t id = (uint32_t)strtoul(dt_json_str(start, "job", "0"), NULL, 10);
    json_object_put(start);
    return id;
}

bool dt_records_launched(const char *dir)
{
    char *path = dt_xasprintf("%s/launch-1.json", dir);
    bool there = access(path, F_OK) == 0;
    free(path);
    return there;
}

#define CHECKPOINT_DEPTH 4 /* of folders in folders */

static double newest_in(int parent, const char *name, int depth)
{
    int fd = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    DIR *d = fd < 0 ? NULL : fdopendir(fd);
    double newest = -INFINITY;
    struct dirent *entry;
    if (fd >= 0 && !d)
        close(fd);
    while (d && (entry = readdir(d))) {
        struct stat st;
        if (entry->d_name[0] == '.' || fstatat(fd, entry->d_name, &st, AT_SYMLINK_NOFOLLOW) < 0)
            continue;
        if (S_ISREG(st.st_mode))
            newest = fmax(newest, (double)st.st_mtim.tv_sec + 1e-9 * (double)st.st_mtim.tv_nsec);
        else if (S_ISDIR(st.st_mode) && depth > 1)
            newest = fmax(newest, newest_in(fd, entry->d_name, depth - 1));
    }
    if (d)
        closedir(d);
    return newest;
}

double dt_records_checkpoint(const char *dir)
{
    char *path = dt_xasprintf("%s/checkpoint", dir);
    double newest = newest_in(AT_FDCWD, path, CHECKPOINT_DEPTH);
    free(path);
    return newest;
}

void dt_records_free(struct dt_records *r)
{
    free(r->failed);
    free(r->notes);
    r->failed = r->notes = NULL;
}
