package mistyped_test

import (
	"errors"
	"testing"

	"github.com/spf13/pflag"
	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/mistyped"
)

func TestTheErrorOfAnUnknownFlagSuggestsAFlag(t *testing.T) {
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	flags.String("since", "", "")
	flags.StringP("namespace", "n", "", "")
	flags.Int("limit", 0, "")
	flags.String("secret", "", "")
	require.NoError(t, flags.MarkHidden("secret"))
	for arg, want := range map[string]string{
		"--snice":        "unknown flag: --snice; did you mean --since?",
		"--name-space=x": "unknown flag: --name-space; did you mean --namespace?",
		"-limit":         "unknown shorthand flag: 'l' in -limit; did you mean --limit?",
		"--quite":        "unknown flag: --quite",
		"--secert":       "unknown flag: --secert",
		"-x":             "unknown shorthand flag: 'x' in -x",
	} {
		require.EqualError(t, mistyped.Flag(flags, flags.Parse([]string{arg})), want)
	}
	other := errors.New("other")
	require.Equal(t, other, mistyped.Flag(flags, other))
}
