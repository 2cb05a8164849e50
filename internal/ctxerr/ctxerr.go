// Package ctxerr adds the cause of an ended context to an error.
package ctxerr

import (
	"context"
	"errors"
	"fmt"
)

// Explain adds the cause of the context to an error, if the context has ended and the error does not contain that cause yet.
func Explain(ctx context.Context, err error) error {
	if cause := context.Cause(ctx); cause != nil && !errors.Is(err, cause) {
		return fmt.Errorf("%w: %w", cause, err)
	}
	return err
}
