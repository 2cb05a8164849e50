package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// recordingStatus says whether a recorder records a cluster now.
type recordingStatus struct {
	Now   bool      `json:"now"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since,omitzero"` // when it took over, zero while it starts; or when the last one ended
	// BehindSeconds is the age of the newest commit. No change that is older is missing.
	BehindSeconds float64 `json:"behindSeconds"`
}

func readRecording(ctx context.Context, db *recorder.Database, conn *pgx.Conn, c postgres.ClusterStatus) (s recordingStatus, err error) {
	last := lastCommit(c)
	s = recordingStatus{Since: last, BehindSeconds: max(time.Since(last), 0).Seconds()}
	if s.By, err = db.Recording(ctx, conn, c.UID); err != nil || s.By == "" {
		return s, err
	}
	s.Now, s.Since = true, time.Time{}
	if s.By == c.Recorder {
		s.Since = c.StartedAt
	}
	return s, nil
}

func (s recordingStatus) behind() time.Duration {
	return time.Duration(s.BehindSeconds * float64(time.Second))
}

func (s recordingStatus) String() string {
	behind := duration.HumanDuration(s.behind())
	switch {
	case !s.Now:
		return fmt.Sprintf("no, nobody since %s", when(s.Since))
	case s.Since.IsZero():
		return fmt.Sprintf("%s is starting, %s behind", s.By, behind)
	}
	return fmt.Sprintf("yes, by %s since %s, at most %s behind", s.By, when(s.Since), behind)
}

// lastCommit is the start of the epoch where nothing was committed since.
func lastCommit(c postgres.ClusterStatus) time.Time {
	if c.ObservedAt.Before(c.StartedAt) {
		return c.StartedAt
	}
	return c.ObservedAt
}
