# json-c: SPEC, journal, reports.
AC_DEFUN([X_AC_JSON_C], [
  PKG_CHECK_MODULES([JSON_C], [json-c >= 0.13], [x_ac_json_c=`$PKG_CONFIG --modversion json-c`],
    [AC_MSG_ERROR([json-c is missing: install libjson-c-dev or json-c-devel])])
])
