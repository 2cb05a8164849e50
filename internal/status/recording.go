package status

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"k8s.io/apimachinery/pkg/util/duration"

	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

// Recording is the state of the recording of a cluster.
type Recording struct {
	Now   bool      `json:"now"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since,omitzero"` // when the recorder took over, zero while it starts; if none records, the last commit
	// LastCommitAgeSeconds is the age of the last commit. It is not the lag: a change that the recorder has not committed may be older.
	LastCommitAgeSeconds float64 `json:"lastCommitAgeSeconds"`
}

func readRecording(ctx context.Context, db *database.Database, conn *pgx.Conn, c postgres.ClusterStatus) (s Recording, err error) {
	last := LastCommit(c)
	s = Recording{Since: last, LastCommitAgeSeconds: max(time.Since(last), 0).Seconds()}
	if s.By, err = db.Recording(ctx, conn, c.UID); err != nil || s.By == "" {
		return s, err
	}
	s.Now, s.Since = true, time.Time{}
	if s.By == c.Recorder {
		s.Since = c.StartedAt
	}
	return s, nil
}

// LastCommitAge returns SinceCommit as text.
func (s Recording) LastCommitAge() string {
	return duration.HumanDuration(s.SinceCommit())
}

// SinceCommit returns the age of the newest commit at the time when the status was read.
func (s Recording) SinceCommit() time.Duration {
	return time.Duration(s.LastCommitAgeSeconds * float64(time.Second))
}

// String returns the state in one line.
func (s Recording) String() string {
	switch {
	case !s.Now:
		return fmt.Sprintf("no, no recorder since %s", When(s.Since))
	case s.Since.IsZero():
		return fmt.Sprintf("%s is starting, last commit %s ago", s.By, s.LastCommitAge())
	}
	return fmt.Sprintf("yes, by %s since %s, last commit %s ago", s.By, When(s.Since), s.LastCommitAge())
}

// LastCommit returns the time of the newest commit. The start of an epoch counts as a commit.
func LastCommit(c postgres.ClusterStatus) time.Time {
	last := c.CommittedAt
	if last.IsZero() {
		last = c.ObservedAt
	}
	if last.Before(c.StartedAt) {
		return c.StartedAt
	}
	return last
}

// When returns a time together with its age.
func When(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), Age(t))
}

// Age returns how long ago a time was.
func Age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(time.Since(t), 0))
}
