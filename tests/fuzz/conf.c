/* dt-tune.conf: read, or refused in one line. */
#include "conf/conf.h"
#include "tests/fuzz/fuzz.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct dt_conf c = {0};
    char *text = dt_xstrndup((const char *)data, size), *why = NULL;
    if (dt_conf_parse(text, &c, &why) < 0)
        require(why && *why && !strchr(why, '\n'));
    else
        require(!why && (!c.users || *c.users) && c.parallel <= 1000000);
    if (c.users)
        dt_conf_has(c.users, "alice");
    dt_conf_free(&c);
    free(why);
    free(text);
    return 0;
}
