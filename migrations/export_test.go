package migrations

import (
	"context"
	"log/slog"
)

// First is the number of the first migration.
const First = first

// To moves the schema up to a version that is not the latest.
func To(ctx context.Context, url string, version int) error {
	return move(ctx, url, slog.New(slog.DiscardHandler), version, "")
}
