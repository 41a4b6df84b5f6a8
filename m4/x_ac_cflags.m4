# Language level, warnings, and the two switches developers use.
AC_DEFUN([X_AC_CFLAGS], [
  AC_ARG_ENABLE([werror],
    AS_HELP_STRING([--enable-werror], [treat warnings as errors (continuous integration)]),
    [], [enable_werror=no])
  AC_ARG_ENABLE([sanitizers],
    AS_HELP_STRING([--enable-sanitizers], [build with AddressSanitizer and UndefinedBehaviorSanitizer]),
    [], [enable_sanitizers=no])
  AC_ARG_ENABLE([coverage],
    AS_HELP_STRING([--enable-coverage], [count which lines and branches run, for tests/coverage]),
    [], [enable_coverage=no])
  DT_CFLAGS="-std=gnu17 -Wall -Wextra"
  AS_IF([test "x$enable_werror" = xyes], [DT_CFLAGS="$DT_CFLAGS -Werror"])
  SANITIZER_FLAGS=""
  AS_IF([test "x$enable_sanitizers" = xyes],
    [SANITIZER_FLAGS="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer"])
  AS_IF([test "x$enable_coverage" = xyes],
    [SANITIZER_FLAGS="$SANITIZER_FLAGS --coverage -fprofile-update=prefer-atomic"])
  MODEL_CFLAGS=""
  for flag in -ffp-contract=off -fvect-cost-model=dynamic; do
    x_ac_save_cflags=$CFLAGS
    CFLAGS="$CFLAGS -Werror $flag"
    AC_MSG_CHECKING([whether $CC takes $flag])
    AC_COMPILE_IFELSE([AC_LANG_PROGRAM], [x_ac_flag=yes; MODEL_CFLAGS="$MODEL_CFLAGS $flag"], [x_ac_flag=no])
    AC_MSG_RESULT([$x_ac_flag])
    CFLAGS=$x_ac_save_cflags
  done
  AC_SUBST([MODEL_CFLAGS])
  AC_SUBST([DT_CFLAGS])
  AC_SUBST([SANITIZER_FLAGS])
])
