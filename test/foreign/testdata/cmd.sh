#!/usr/bin/env bash
# Runs one function of Kubernetes' test/cmd against a server that is there already.
#   cmd.sh FUNCTION
# The current folder is a copy of Kubernetes' module. BIN has kubectl, PORT is that of the server on 127.0.0.1, TMPDIR takes files.
set -o errexit -o nounset -o pipefail

function=$1
export TERM=xterm THIS_PLATFORM_BIN=$BIN SECURE_API_PORT=$PORT

# Some templates name /tmp. What is left over has to go with TMPDIR.
mktemp() { command mktemp "${@/#\/tmp\//$TMPDIR/}"; }

source hack/lib/util.sh
source hack/lib/logging.sh
source hack/lib/test.sh
source test/cmd/legacy-script.sh

kube::util::ensure-temp-dir
HOME=$KUBE_TEMP
CONTEXT=test
SED=sed
kubectl config set-credentials test-admin --token admin-token
kubectl config set-cluster local --insecure-skip-tls-verify --server "https://127.0.0.1:$PORT"
kubectl config set-context "$CONTEXT" --user test-admin --cluster local
kubectl config use-context "$CONTEXT"
trap stop-proxy EXIT

# runTests sets variables, and then has this run what it is told to. What is said when the function has failed is about cleaning up.
record_command() {
	set +o errexit +o nounset
	("$function")
	if [[ $? -ne 0 ]]; then
		foundError=$function
		exec >/dev/null 2>&1
	fi
	set -o errexit -o nounset
}

export SUPPORTED_RESOURCES=("*")
WHAT=$function runTests
