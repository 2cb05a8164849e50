package controlplane_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"testing"

	"go.uber.org/goleak"

	"github.com/kuberewind/kuberewind/internal/controlplane"
)

// victimVariable makes the test program start a control plane, print its processes, and wait to be killed.
const victimVariable = "KUBEREWIND_TEST_VICTIM"

// victim is the output of a program that the test will kill.
type victim struct {
	PIDs []int
	Dir  string
}

func TestMain(m *testing.M) {
	if os.Getenv(victimVariable) != "" {
		if err := waitToBeKilled(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
	}
	goleak.VerifyTestMain(m)
}

func waitToBeKilled() error {
	plane, err := controlplane.Start(context.Background(), controlplane.Options{})
	if err != nil {
		return err
	}
	report := victim{PIDs: []int{plane.Etcd.PID(), plane.APIServer.PID()}, Dir: plane.Dir()}
	if err := json.NewEncoder(os.Stdout).Encode(report); err != nil {
		return err
	}
	select {}
}
