package measure

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"testing"

	"go.uber.org/goleak"
)

// burnt is what the child that burns uses: more than this process does meanwhile.
const burnt = 30 * tick

// children are the children of the tests.
var children = Children{
	"double": func(_ context.Context, in *json.Decoder, out io.Writer) error {
		var n int
		if err := in.Decode(&n); err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(2 * n)
	},
	// It uses some ticks of CPU time, says so, and lives until its input ends.
	"burn": func(_ context.Context, in *json.Decoder, out io.Writer) error {
		for {
			switch used, err := CPUOfSelf(); {
			case err != nil:
				return err
			case used < burnt:
				continue
			}
			if _, err := fmt.Fprintln(out, "burnt"); err != nil {
				return err
			}
			var more any
			for in.Decode(&more) == nil {
			}
			return nil
		}
	},
}

func TestMain(m *testing.M) {
	if err := children.Run(context.Background()); !errors.Is(err, ErrNotChild) {
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}
