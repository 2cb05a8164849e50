// Command replay shows a Kubernetes cluster as it was at any instant, from what recorder recorded of it.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"k8s.io/cli-runtime/pkg/genericiooptions"

	"github.com/kuberewind/kuberewind/internal/replay"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		// Before anything is told to end: a second signal ends the program at once, whatever it is waiting for.
		signal.Stop(signals)
		cancel(ended(first))
	}()
	// A pipe that nobody reads any more is an error of writing then. The signal would end the program before it stops an embedded database.
	signal.Notify(make(chan os.Signal, 1), syscall.SIGPIPE)
	streams := genericiooptions.IOStreams{In: os.Stdin, Out: os.Stdout, ErrOut: os.Stderr}
	os.Exit(replay.Execute(ctx, os.Args[0], os.Args[1:], streams))
}

func ended(by os.Signal) error {
	if by == syscall.SIGTERM {
		return &replay.Signal{Name: "SIGTERM", Code: 143}
	}
	return &replay.Signal{Name: "SIGINT", Code: 130}
}
