# What the tests need; a build does without.
AC_DEFUN([X_AC_TESTS], [
  PKG_CHECK_MODULES([CMOCKA], [cmocka], [x_ac_cmocka="cmocka `$PKG_CONFIG --modversion cmocka`"],
    [x_ac_cmocka="no (cmocka not found)"])
  AM_CONDITIONAL([HAVE_CMOCKA], [test "x$x_ac_cmocka" != "xno (cmocka not found)"])
  AC_PATH_PROG([BATS], [bats])
  AM_CONDITIONAL([HAVE_BATS], [test -n "$BATS"])
  AS_IF([test -n "$BATS"], [x_ac_bats="bats ($BATS)"], [x_ac_bats="no (bats not found)"])
])
