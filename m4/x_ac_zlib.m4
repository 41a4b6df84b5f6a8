# zlib: the check sum of the journal's records.
AC_DEFUN([X_AC_ZLIB], [
  AC_CHECK_HEADER([zlib.h], [], [AC_MSG_ERROR([zlib is missing: install zlib1g-dev or zlib-devel])])
  x_ac_save_libs=$LIBS
  AC_CHECK_LIB([z], [crc32], [ZLIB_LIBS="-lz"],
    [AC_MSG_ERROR([zlib does not link: install zlib1g-dev or zlib-devel])])
  LIBS=$x_ac_save_libs
  AC_SUBST([ZLIB_LIBS])
])
