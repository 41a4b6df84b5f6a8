# Slurm's public headers, version, client library and plugin folder.
AC_DEFUN([X_AC_SLURM], [
  AC_ARG_WITH([slurm],
    AS_HELP_STRING([--with-slurm=PREFIX], [where Slurm is installed (its include/slurm and lib)]),
    [], [with_slurm=])
  AC_ARG_WITH([slurm-plugindir],
    AS_HELP_STRING([--with-slurm-plugindir=DIR], [where Slurm's plugins are, and ours go]),
    [slurmplugindir=$withval], [slurmplugindir=])

  SLURM_CPPFLAGS=""
  SLURM_LIBS="-lslurm"
  x_ac_slurm_includes="compiler's default path"
  AS_IF([test -n "$with_slurm"], [
    SLURM_CPPFLAGS="-I$with_slurm/include"
    SLURM_LIBS="-L$with_slurm/lib -lslurm"
    x_ac_slurm_includes="$with_slurm/include"])

  x_ac_save_cppflags=$CPPFLAGS
  CPPFLAGS="$CPPFLAGS $SLURM_CPPFLAGS"
  AC_CHECK_HEADERS([slurm/slurm.h slurm/spank.h], [],
    [AC_MSG_ERROR([Slurm's headers are missing: install libslurm-dev or slurm-devel, or give --with-slurm=PREFIX])],
    [#include <slurm/slurm.h>])

  AC_COMPUTE_INT([x_ac_slurm_number], [SLURM_VERSION_NUMBER], [#include <slurm/slurm.h>],
    [AC_MSG_ERROR([Slurm's headers do not say their version])])
  x_ac_slurm_version=`printf '%d.%02d.%d' $((x_ac_slurm_number >> 16)) $((x_ac_slurm_number >> 8 & 255)) $((x_ac_slurm_number & 255))`
  AC_MSG_CHECKING([for Slurm's version])
  AC_MSG_RESULT([$x_ac_slurm_version])
  AC_COMPILE_IFELSE([AC_LANG_PROGRAM([[#include <slurm/slurm.h>
#if SLURM_VERSION_NUMBER < SLURM_VERSION_NUM(20,11,0)
#error too old
#endif]])], [], [AC_MSG_ERROR([Slurm 20.11 or newer is needed])])
  CPPFLAGS=$x_ac_save_cppflags

  x_ac_save_libs=$LIBS
  LIBS="$LIBS $SLURM_LIBS"
  AC_CHECK_FUNC([slurm_load_job_user], [],
    [AC_MSG_ERROR([libslurm does not link: install libslurm-dev or slurm-devel, or give --with-slurm=PREFIX])])
  LIBS=$x_ac_save_libs

  AC_MSG_CHECKING([for Slurm's plugin folder])
  AS_IF([test -z "$slurmplugindir"], [
    for dir in "$with_slurm/lib/slurm" "$with_slurm/lib64/slurm" \
               /usr/lib/*-linux-gnu/slurm-wlm /usr/lib/*-linux-gnu/slurm \
               /usr/lib64/slurm /usr/lib/slurm /opt/slurm/lib/slurm; do
      AS_IF([test -e "$dir/select_cons_tres.so"], [slurmplugindir=$dir; break])
    done])
  x_ac_slurm_found=$slurmplugindir
  AS_IF([test -z "$slurmplugindir"], [slurmplugindir='${libdir}/slurm'])
  AC_MSG_RESULT([$slurmplugindir])
  AS_IF([test -z "$x_ac_slurm_found"],
    [AC_MSG_WARN([Slurm's own plugins were not found here; if they are elsewhere on the cluster (scontrol show config | grep PluginDir), give --with-slurm-plugindir=DIR])])

  # Where dt-tune.conf is, with slurm.conf, when SLURM_CONF does not say so.
  AC_ARG_WITH([slurm-sysconfdir],
    AS_HELP_STRING([--with-slurm-sysconfdir=DIR], [where slurm.conf is (default: PREFIX/etc of --with-slurm, else /etc/slurm)]),
    [slurmetcdir=$withval], [AS_IF([test -n "$with_slurm"], [slurmetcdir=$with_slurm/etc], [slurmetcdir=/etc/slurm])])

  AC_SUBST([slurmetcdir])
  AC_SUBST([SLURM_CPPFLAGS])
  AC_SUBST([SLURM_LIBS])
  AC_SUBST([slurmplugindir])
])
