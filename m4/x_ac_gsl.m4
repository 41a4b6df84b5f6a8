# GSL: random numbers, Sobol points, sorting.
AC_DEFUN([X_AC_GSL], [
  PKG_CHECK_MODULES([GSL], [gsl >= 2.5], [x_ac_gsl=`$PKG_CONFIG --modversion gsl`],
    [AC_MSG_ERROR([GSL is missing: install libgsl-dev or gsl-devel])])
])
