package ingest

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"os"
	"testing"

	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/serve"
	"github.com/kuberewind/kuberewind/internal/recordertest"
)

func TestMain(m *testing.M) {
	children := measure.Children{serve.ChildName: serve.Child, talkativeChild: talkative, parentChild: parent, idleChild: idle}
	maps.Copy(children, Children())
	if err := children.Run(context.Background()); !errors.Is(err, measure.ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	recordertest.Main(m, "recorder")
}
