# GSL for random numbers and linear algebra, on the fastest CBLAS there is.
AC_DEFUN([X_AC_GSL], [
  PKG_CHECK_MODULES([GSL], [gsl >= 2.5], [x_ac_gsl=`$PKG_CONFIG --modversion gsl`],
    [AC_MSG_ERROR([GSL is missing: install libgsl-dev or gsl-devel])])
  PKG_CHECK_MODULES([OPENBLAS], [openblas],
    [x_ac_cblas="OpenBLAS"
     GSL_LIBS=`echo "$GSL_LIBS" | sed "s,-lgslcblas,$OPENBLAS_LIBS,"`],
    [x_ac_cblas="GSL's own (slow; OpenBLAS not found)"])
])
