package main

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// recordingStatus says whether a recorder records a cluster now.
type recordingStatus struct {
	Now   bool      `json:"now"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since,omitzero"` // when it took over, zero while it starts; or when the last one ended
	// LastCommitAgeSeconds is no lag. A change that the recorder has not committed may be older.
	LastCommitAgeSeconds float64 `json:"lastCommitAgeSeconds"`
}

func readRecording(ctx context.Context, db *database.Database, conn *pgx.Conn, c postgres.ClusterStatus) (s recordingStatus, err error) {
	last := lastCommit(c)
	s = recordingStatus{Since: last, LastCommitAgeSeconds: max(time.Since(last), 0).Seconds()}
	if s.By, err = db.Recording(ctx, conn, c.UID); err != nil || s.By == "" {
		return s, err
	}
	s.Now, s.Since = true, time.Time{}
	if s.By == c.Recorder {
		s.Since = c.StartedAt
	}
	return s, nil
}

func (s recordingStatus) lastCommitAge() string {
	return duration.HumanDuration(s.sinceCommit())
}

func (s recordingStatus) sinceCommit() time.Duration {
	return time.Duration(s.LastCommitAgeSeconds * float64(time.Second))
}

func (s recordingStatus) String() string {
	switch {
	case !s.Now:
		return fmt.Sprintf("no, nobody since %s", when(s.Since))
	case s.Since.IsZero():
		return fmt.Sprintf("%s is starting, last commit %s ago", s.By, s.lastCommitAge())
	}
	return fmt.Sprintf("yes, by %s since %s, last commit %s ago", s.By, when(s.Since), s.lastCommitAge())
}

// lastCommit is the time of the newest commit. The start of an epoch is one.
func lastCommit(c postgres.ClusterStatus) time.Time {
	last := c.CommittedAt
	if last.IsZero() {
		last = c.ObservedAt
	}
	if last.Before(c.StartedAt) {
		return c.StartedAt
	}
	return last
}
