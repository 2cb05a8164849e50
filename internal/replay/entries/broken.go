package entries

import (
	"errors"
	"fmt"

	"github.com/kuberewind/kuberewind/history"
)

// Broken converts an error about one row or one day to a remark. It returns false for any other error, which ends the
// reading.
func Broken(err error) (Remark, bool) {
	var damaged *history.DamagedError
	var missing *history.MissingDayError
	r := Remark{Text: err.Error()}
	switch {
	case errors.As(err, &damaged):
		r.Kind, r.Seq = "damaged", damaged.Seq
		if damaged.Stream != nil {
			r.Group, r.Resource = damaged.Stream.Group, damaged.Stream.Resource
		}
	case errors.As(err, &missing):
		r.Kind = "missing_day"
	default:
		return r, false
	}
	return r, true
}

// Damage returns an error for an incomplete answer. Remarks have named the rows in their places.
func Damage(damaged []error) error {
	switch len(damaged) {
	case 0:
		return nil
	case 1:
		return damaged[0]
	}
	return fmt.Errorf("%d deltas cannot be shown, the first because: %w", len(damaged), damaged[0])
}
