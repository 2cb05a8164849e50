package mistyped

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Flag adds to the error of an unknown flag which flag was perhaps meant. It leaves any other error as it is.
func Flag(flags *pflag.FlagSet, err error) error {
	var unknown *pflag.NotExistError
	if !errors.As(err, &unknown) {
		return err
	}
	var names []string
	flags.VisitAll(func(f *pflag.Flag) {
		if !f.Hidden {
			names = append(names, f.Name)
		}
	})
	// A long flag after one dash is taken for letters.
	word := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName())
	if like := Suggest(word, names); like != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, like)
	}
	return err
}
