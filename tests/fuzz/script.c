/* A batch script of any bytes through the checks, the #SBATCH lexer and the option reader, and the same bytes as a value
 * through dt_sbatch_quote() and back. */
#include "spec/submission_private.h"
#include "tests/fuzz/fuzz.h"

static void read_script(const char *text, size_t len)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_strv warnings = DT_STRV_INIT;
    struct dt_option_reader r = {0};
    struct dt_option_list l = {0};
    if (dt_batch_script_check(text, len, "fuzz", &e) < 0)
        check_error(&e);
    dt_directives_foreign(text, len);
    if (dt_option_reader_script(&r, text, len, "fuzz", &l, &warnings, &e) < 0)
        check_error(&e);
    for (size_t i = 0; i < l.n; i++)
        require(l.v[i].name && l.v[i].line > 0);
    for (size_t i = 0; i < warnings.n; i++)
        require(dt_starts_with(warnings.v[i], "fuzz:") && !strchr(warnings.v[i], '\n'));
    dt_option_list_free(&l);
    dt_option_reader_free(&r);
    dt_strv_free(&warnings);
}

static void quote_and_read(const char *value)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_strv warnings = DT_STRV_INIT;
    struct dt_option_reader r = {0};
    struct dt_option_list l = {0};
    char *quoted = dt_sbatch_quote(value, NULL);
    if (!quoted)
        return;
    char *text = dt_xasprintf("#SBATCH --comment=%s\n", quoted);
    require(dt_option_reader_script(&r, text, strlen(text), "fuzz", &l, &warnings, &e) == 0);
    require(l.n == 1 && strcmp(l.v[0].value, value) == 0);
    dt_option_list_free(&l);
    dt_option_reader_free(&r);
    dt_strv_free(&warnings);
    free(text);
    free(quoted);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size);
    read_script(text, size);
    quote_and_read(text);
    free(text);
    return 0;
}
