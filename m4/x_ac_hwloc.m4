# hwloc: the topology of nodes.
AC_DEFUN([X_AC_HWLOC], [
  PKG_CHECK_MODULES([HWLOC], [hwloc >= 2.1], [x_ac_hwloc=`$PKG_CONFIG --modversion hwloc`],
    [AC_MSG_ERROR([hwloc 2.1 or newer is missing: install libhwloc-dev or hwloc-devel])])
])
