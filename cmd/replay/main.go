// Command replay shows a recorded Kubernetes cluster as it was at any instant.
package main

import (
	"context"
	"os"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/replay"
	"github.com/kuberewind/kuberewind/internal/replay/signals"
)

func main() {
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(replay.Execute(signals.End(context.Background()), os.Args[0], os.Args[1:], streams))
}
