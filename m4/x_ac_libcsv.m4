# libcsv: measured tables and lists of candidates.
AC_DEFUN([X_AC_LIBCSV], [
  AC_CHECK_HEADER([csv.h], [], [AC_MSG_ERROR([libcsv is missing: install libcsv-dev or libcsv-devel])])
  x_ac_save_libs=$LIBS
  AC_CHECK_LIB([csv], [csv_parse], [CSV_LIBS="-lcsv"],
    [AC_MSG_ERROR([libcsv does not link: install libcsv-dev or libcsv-devel])])
  LIBS=$x_ac_save_libs
  AC_SUBST([CSV_LIBS])
])
