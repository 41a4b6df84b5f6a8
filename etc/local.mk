# What is installed besides programs: the documents, and example jobs for users to copy.
dist_doc_DATA = README.md LICENSE etc/dt-tune.conf.example
# To be linked into the folder that plugstack.conf includes; a link that leads nowhere any more is passed over by Slurm,
# where a line for a plugin that is gone would be an error of every command.
plugstackdir = $(pkgdatadir)/plugstack.conf.d
dist_plugstack_DATA = etc/plugstack.conf.d/dt-tune.conf
examplesdir = $(docdir)/examples
dist_examples_SCRIPTS = \
	etc/examples/ps_async.sh etc/examples/ps_sync.sh etc/examples/ddp.sh etc/examples/heat_mpi.sh etc/examples/serve.sh \
	etc/examples/digits.sh etc/examples/torchrun.sh etc/examples/tensorflow.sh etc/examples/mxnet.sh etc/examples/horovod.sh
dist_examples_DATA = \
	etc/examples/README etc/examples/spec.json etc/examples/pbt.json etc/examples/train_common.py etc/examples/dt_tune.py etc/examples/dt_tune.h \
	etc/examples/digits.json etc/examples/digits.py etc/examples/tensorflow.json etc/examples/tensorflow_train.py etc/examples/mxnet.json etc/examples/mxnet_train.py \
	etc/examples/horovod_train.py etc/examples/ps_train.py etc/examples/ddp.py etc/examples/heat_mpi.c etc/examples/optuna_serve.py
# What programs may use lies where it is found without the examples, too.
dist_pkgdata_DATA += etc/examples/dt_tune.py
include_HEADERS = etc/examples/dt_tune.h

# Completion in bash: of our commands in bash-completion's own folder, where it finds them by name; of sbatch where a shell
# reads it when it starts, for sbatch's name there is taken.
completionsdir = $(datadir)/bash-completion/completions
dist_completions_DATA = etc/completion/dt-tune
bashcompletiondir = $(sysconfdir)/bash_completion.d
dist_bashcompletion_DATA = etc/completion/dt-tune-sbatch
.PHONY: link-completion unlink-completion
link-completion:
	cd "$(DESTDIR)$(completionsdir)" && rm -f dt-sbatch && $(LN_S) dt-tune dt-sbatch
unlink-completion:
	rm -f "$(DESTDIR)$(completionsdir)/dt-sbatch"

# Packages: etc/packaging/build deb|rpm DIR.
EXTRA_DIST += etc/packaging
