/* A folder of a test's own and an environment of its own: both are as before when it ends, however
 * it ends. For cmocka_unit_test_setup_teardown and groups. */
#ifndef LB_SCRATCH_H
#define LB_SCRATCH_H

#ifdef __cplusplus
extern "C" {
#endif

/* Makes the folder; removes it with all that is in it, and restores what scratch_setenv changed. */
int scratch_setup(void **state);
int scratch_teardown(void **state);

const char *scratch_folder(void);

/* folder/name: good until 8 more were asked for. */
const char *scratch_path(const char *name);

/* As setenv, until the teardown; value NULL unsets. */
void scratch_setenv(const char *name, const char *value);

#ifdef __cplusplus
}
#endif
#endif
