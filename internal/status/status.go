package status

import (
	"context"
	"path/filepath"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Record is the status of a record, read from the database and the disk.
type Record struct {
	// Outdated are the files of the embedded PostgreSQL that were replaced on disk since it was started.
	Outdated      []string  `json:"outdated,omitempty"`
	OutdatedError string    `json:"outdatedError,omitempty"` // why the files cannot be checked
	Clusters      []Cluster `json:"clusters"`
}

// Cluster is one cluster of the record.
type Cluster struct {
	postgres.ClusterStatus
	Recording Recording `json:"recording"`
	Standbys  []string  `json:"standbys,omitempty"`
	Spool     Spool     `json:"spool"`
}

// Spool holds the contents of a spool on disk.
type Spool struct {
	spool.Contents
	Error string `json:"error,omitempty"` // why it cannot be read
}

// Read reads the status of an existing record. Spools is the folder of the spools, if they are on this machine.
func Read(ctx context.Context, db *database.Database, conn *pgx.Conn, spools string) (found Record, err error) {
	recorded, err := postgres.ReadStatus(ctx, conn)
	if err != nil {
		return found, err
	}
	if found.Outdated, err = db.Outdated(); err != nil {
		found.OutdatedError = err.Error()
	}
	found.Clusters = make([]Cluster, 0, len(recorded.Clusters))
	for _, recorded := range recorded.Clusters {
		c := Cluster{ClusterStatus: recorded, Spool: lookAtSpool(filepath.Join(spools, recorded.UID))}
		if c.Recording, err = readRecording(ctx, db, conn, recorded); err != nil {
			return found, err
		}
		if c.Standbys, err = election.Standbys(ctx, conn, c.UID); err != nil {
			return found, err
		}
		found.Clusters = append(found.Clusters, c)
	}
	return found, nil
}

// lookAtSpool returns the contents of a spool's folder, or why it cannot be read. The folder may belong to another user, so an error there must
// not hide the rest of the status.
func lookAtSpool(dir string) Spool {
	contents, err := spool.Inspect(dir)
	if err != nil {
		return Spool{Error: err.Error()}
	}
	return Spool{Contents: contents}
}
