/* The environment in which a trial starts its roles, a variable a line: a plan, or refused in one line. And the same bytes
 * as a carrier. */
#include "expand/carrier.h"
#include "launch/launch.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_error e = DT_ERROR_INIT;
    struct dt_strv env = DT_STRV_INIT;
    struct dt_carrier c;
    char *text = text_of(data, size), *rest = text, *line;
    if (dt_carrier_parse(text, &c) == 0)
        require(c.json >= text && c.json + c.json_len <= text + size && c.script <= text + size);
    while ((line = strsep(&rest, "\n")))
        dt_strv_add(&env, line);
    struct dt_launch_plan *p = dt_launch_plan_read(env.v, &e);
    if (!p)
        check_error(&e);
    dt_launch_plan_free(p);
    dt_strv_free(&env);
    free(text);
    return 0;
}
