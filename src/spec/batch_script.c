#include "spec/submission_private.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

const char *dt_env_get(char *const *env, const char *name)
{
    size_t n = strlen(name);
    for (; env && *env; env++)
        if (strncmp(*env, name, n) == 0 && (*env)[n] == '=')
            return *env + n + 1;
    return NULL;
}

static bool is_file(const char *path)
{
    struct stat st;
    return stat(path, &st) == 0 && !S_ISDIR(st.st_mode);
}

/* A name that begins with neither '.' nor '/' is looked for in `dir` (that of --chdir), then along
 * PATH, at last in the current directory. */
static char *search(const char *given, const char *dir, const char *cwd, char *const *env)
{
    const char *path = dt_env_get(env, "PATH");
    struct dt_strv dirs = DT_STRV_INIT;
    char *found = NULL;
    if (given[0] == '/')
        return dt_xstrdup(given);
    if (given[0] != '.') {
        dt_strv_add(&dirs, dir);
        dt_strv_split(&dirs, path ? path : "", ":");
    }
    for (size_t i = 0; i < dirs.n && !found; i++) {
        char *candidate = dirs.v[i][0] == '.' ? dt_xasprintf("%s/%s/%s", dir, dirs.v[i], given)
                                              : dt_xasprintf("%s/%s", dirs.v[i], given);
        if (is_file(candidate))
            found = candidate;
        else
            free(candidate);
    }
    dt_strv_free(&dirs);
    return found ? found : dt_xasprintf("%s/%s", cwd, given);
}

static int check_readable(const char *path, const char *given, const char *dir, struct dt_error *e)
{
    struct stat st;
    if (stat(path, &st) < 0 && errno != ENOENT)
        return dt_fail(e, "%s: cannot read the script: %s: check the path", given, strerror(errno));
    if (stat(path, &st) < 0 && (given[0] == '/' || given[0] == '.'))
        return dt_fail(e, "%s: there is no such script: check the path", given);
    if (stat(path, &st) < 0)
        return dt_fail(e, "%s: no such script in %s or along PATH: give its path", given, dir);
    if (S_ISDIR(st.st_mode))
        return dt_fail(e, "%s: is a directory: give the batch script in it", given);
    if (access(path, R_OK) < 0)
        return dt_fail(e, "%s: cannot read the script: %s: make it readable (chmod u+r)", given,
                       strerror(errno));
    return 0;
}

int dt_batch_script_check(const char *text, size_t len, const char *name, struct dt_error *e)
{
    if (len == 0)
        return dt_fail(e, "%s: the batch script is empty: write the commands of the job into it",
                       name);
    if (text[strspn(text, " \t\n\v\f\r")] == '\0' && strlen(text) == len)
        return dt_fail(
            e, "%s: the batch script holds only blanks: write the commands of the job into it",
            name);
    if (dt_starts_with(text, "\xEF\xBB\xBF"))
        return dt_fail(e,
                       "%s:1: begins with a byte order mark, so sbatch does not see its #! line: "
                       "save it as UTF-8 "
                       "without BOM",
                       name);
    if (dt_starts_with(text, "\x7f"
                             "ELF"))
        return dt_fail(e,
                       "%s: is a program, not a batch script: give it to --wrap, or write a script "
                       "that starts it",
                       name);
    if (*text == '{')
        return dt_fail(
            e,
            "%s: looks like a SPEC, not like a batch script: write --dt-tune=%s, and then "
            "the script",
            name, name);
    if (!dt_starts_with(text, "#!"))
        return dt_fail(e,
                       "%s:1: is no batch script for sbatch without an interpreter line: begin it "
                       "with #!/bin/bash",
                       name);
    const char *nul = memchr(text, '\0', len), *crlf = memmem(text, len, "\r\n", 2);
    if (nul)
        return dt_fail(e,
                       "%s: holds a NUL byte (byte %zu), which slurmctld refuses: put binary data "
                       "into another file",
                       name, (size_t)(nul - text) + 1);
    if (crlf) {
        int line = 1;
        for (const char *p = text; p < crlf; p++)
            line += *p == '\n';
        return dt_fail(e, "%s:%d: has DOS line ends (CR LF), which sbatch refuses: run dos2unix %s",
                       name, line, name);
    }
    return 0;
}

int dt_batch_script_find(struct dt_submission *s, const char *given, const char *chdir,
                         char *const *env, struct dt_error *e)
{
    char *cwd = getcwd(NULL, 0);
    if (!cwd)
        return dt_fail(e, "cannot tell the current directory: %s: change to one that exists",
                       strerror(errno));
    char *dir = chdir && chdir[0] != '/' ? dt_xasprintf("%s/%s", cwd, chdir)
                                         : dt_xstrdup(chdir ? chdir : cwd);
    s->script_name = dt_xstrdup(given);
    s->script_path = search(given, dir, cwd, env);
    int rc = check_readable(s->script_path, given, dir, e);
    free(dir);
    free(cwd);
    if (rc < 0)
        return -1;
    s->script = dt_read_file(s->script_path, DT_SCRIPT_MAX, &s->script_len, e);
    return s->script ? dt_batch_script_check(s->script, s->script_len, given, e) : -1;
}

int dt_batch_script_stdin(struct dt_submission *s, int fd, struct dt_error *e)
{
    const char *what = "standard input";
    struct stat st;
    s->script_name = dt_xstrdup(what);
    s->script_path = dt_xstrdup(what);
    if (fd < 0)
        return dt_fail(e,
                       "%s: the script cannot be read from there a second time: put it into a file "
                       "and give its name",
                       what);
    if (fstat(fd, &st) < 0)
        return dt_fail(e, "%s: cannot read the script: %s: give the script's name", what,
                       strerror(errno));
    if (S_ISDIR(st.st_mode))
        return dt_fail(e, "%s: is a directory: give the script's name", what);
    int again = -1;
    if (S_ISREG(st.st_mode) && lseek(fd, 0, SEEK_CUR) >= st.st_size) {
        /* sbatch has read it to the end; a new open file begins at the start and leaves its offset
         * alone */
        char *path = dt_xasprintf("/proc/self/fd/%d", fd);
        again = open(path, O_RDONLY | O_CLOEXEC);
        free(path);
    }
    s->script = dt_read_fd(again >= 0 ? again : fd, what, DT_SCRIPT_MAX, &s->script_len, e);
    if (again >= 0)
        close(again);
    if (s->script && s->script_len == 0 && !S_ISREG(st.st_mode))
        return dt_fail(e,
                       "%s: holds no script (a pipe can be read only once): put the script into a "
                       "file and give its "
                       "name",
                       what);
    return s->script ? dt_batch_script_check(s->script, s->script_len, what, e) : -1;
}

void dt_batch_script_wrap(struct dt_submission *s, const char *command)
{
    s->script_name = dt_xstrdup("--wrap");
    s->script_path = dt_xstrdup("--wrap");
    s->script =
        dt_xasprintf("#!/bin/sh\n# This script was created by sbatch --wrap.\n\n%s\n", command);
    s->script_len = strlen(s->script);
}
