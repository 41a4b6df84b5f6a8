/* What the SPANK plugin and the job_submit plugin call each other's things by. */
#ifndef DT_PLUGIN_NAMES_H
#define DT_PLUGIN_NAMES_H

/* Slurm makes an entry of the job control environment from every option given: this, the option's
 * name with `_` for each character that is no letter or digit, `=`, the value. */
#define DT_SPANK_OPTION "_SLURM_SPANK_OPTION_dt_tune_"
/* Slurm exports each entry of that environment to the job itself, and so to submissions from
 * within, with this in front. */
#define DT_SPANK_EXPORT "SLURM_SPANK_"

/* Entries of our own: the checked study, and the mark of an option that is to be ignored. */
#define DT_ENTRY_STUDY "DT_TUNE_STUDY"
#define DT_ENTRY_IGNORED "DT_TUNE_INHERITED"

#define DT_STUDY_LIMIT 65536 /* bytes; a study is shorter */

#endif
