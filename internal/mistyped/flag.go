package mistyped

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/pflag"
)

// Flag adds the flag that the user perhaps meant to the error of an unknown flag. It returns any other error unchanged.
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
	// pflag reads a long flag after one dash as shorthand letters.
	word := cmp.Or(unknown.GetSpecifiedShortnames(), unknown.GetSpecifiedName())
	if like := Suggest(word, names); like != "" {
		return fmt.Errorf("%w; did you mean --%s?", err, like)
	}
	return err
}
