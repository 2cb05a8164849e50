// Package scenetest gives tests databases that hold the recorded scene.
//
//	database := pgtest.New(t, scenetest.Record)
//
// The recording is written once per test binary, into a template of pgtest. Each database is a copy of it.
package scenetest

import (
	"context"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/internal/scene/record"
)

// Record is the Setup of a database that holds the record of the scene.
func Record(ctx context.Context, conn *pgx.Conn) error {
	if err := pgtest.EmptyRecord(ctx, conn); err != nil {
		return err
	}
	return record.Into(ctx, conn.Config().ConnString())
}
