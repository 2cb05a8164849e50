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

// children are those that the tests start.
var children = Children{
	"double": func(_ context.Context, in *json.Decoder, out io.Writer) error {
		var n int
		if err := in.Decode(&n); err != nil {
			return err
		}
		return json.NewEncoder(out).Encode(2 * n)
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
