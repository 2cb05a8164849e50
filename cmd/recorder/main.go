// Command recorder follows a Kubernetes cluster and records every change of every object in PostgreSQL.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"
)

func main() {
	ctx, cancel := context.WithCancelCause(context.Background())
	signals := make(chan os.Signal, 1)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		first := <-signals
		// Stop comes before cancel. From then on, a second signal ends the program at once.
		signal.Stop(signals)
		cancel(fmt.Errorf("ended by a signal: %s", first))
	}()
	os.Exit(run(ctx, os.Args[1:], streams{in: os.Stdin, out: os.Stdout, err: os.Stderr}))
}
