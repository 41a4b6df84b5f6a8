# muParser's C interface: constraint expressions.
AC_DEFUN([X_AC_MUPARSER], [
  PKG_CHECK_MODULES([MUPARSER], [muparser >= 2.2], [x_ac_muparser=`$PKG_CONFIG --modversion muparser`],
    [AC_MSG_ERROR([muParser is missing: install libmuparser-dev or muParser-devel])])
  x_ac_save_cflags=$CFLAGS
  x_ac_save_libs=$LIBS
  CFLAGS="$CFLAGS $MUPARSER_CFLAGS"
  LIBS="$LIBS $MUPARSER_LIBS"
  AC_LINK_IFELSE([AC_LANG_PROGRAM([[#include <muParserDLL.h>]], [[mupRelease(mupCreate(muBASETYPE_FLOAT));]])], [],
    [AC_MSG_ERROR([muParser lacks its C interface (muParserDLL.h)])])
  CFLAGS=$x_ac_save_cflags
  LIBS=$x_ac_save_libs
])
