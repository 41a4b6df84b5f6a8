/* How the study goes, where squeue shows it: the comment of the tuning job. At most one request a
 * minute, and only where there is something else to say. */
#include "backend/backend.h"
#include "tools/tools.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MINUTE 60.0
#define RETRY 600.0 /* after a refusal */

struct board board_new(uint32_t tuner_job)
{
    bool ours = tuner_job && dt_slurm_comment_is_free(tuner_job);
    return (struct board){.job = ours ? tuner_job : 0, .due = -INFINITY};
}

void board_show(struct board *b, const struct dt_study *s)
{
    double now = dt_monotonic();
    if (!b->job || now < b->due)
        return;
    char *words = dt_report_progress(s), *text = dt_xasprintf("dt-tune: %s", words);
    free(words);
    if (b->shown && strcmp(text, b->shown) == 0) {
        free(text);
        return;
    }
    b->due = now + (dt_slurm_comment(b->job, text, NULL) == 0 ? MINUTE : RETRY);
    free(b->shown);
    b->shown = text;
}

void board_free(struct board *b)
{
    free(b->shown);
    b->shown = NULL;
}
