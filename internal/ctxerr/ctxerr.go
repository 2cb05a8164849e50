// Package ctxerr explains errors of contexts that have ended.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
)

// Explain adds to an error why the context has ended, if it has and the error does not say so.
func Explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
