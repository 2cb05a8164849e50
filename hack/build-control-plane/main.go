// Command build-control-plane downloads or builds the control plane programs into the cache, if they are missing. The last line
// that it prints is their folder. hack/build-control-plane.sh runs it.
package main

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/kuberewind/kuberewind/internal/controlplane/binaries"
)

func main() {
	index := flag.String("index", "", "address of the `index` by which setup-envtest downloads (default: the one of this source tree); "+
		binaries.NoDownload+": build everything")
	flag.Parse()
	names, err := wanted(flag.Args())
	if err != nil {
		fmt.Fprintln(os.Stderr, "build-control-plane:", err)
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	dir, err := binaries.Build(ctx, binaries.Options{Progress: os.Stderr, Index: *index}, names...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "build-control-plane:", err)
		os.Exit(1)
	}
	fmt.Println(dir)
}

// wanted returns the files to make.
func wanted(args []string) ([]string, error) {
	switch {
	case len(args) == 0:
		return binaries.Minimal, nil
	case len(args) == 1 && args[0] == "full":
		return binaries.Full, nil
	default:
		return nil, fmt.Errorf(`unexpected arguments %q; there is one, "full": the scheduler, the controller manager and kwok too`, args)
	}
}
