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

// Recording says whether a recorder records a cluster now.
type Recording struct {
	Now   bool      `json:"now"`
	By    string    `json:"by,omitempty"`
	Since time.Time `json:"since,omitzero"` // when it took over, zero while it starts; or when the last one ended
	// LastCommitAgeSeconds is no lag. A change that the recorder has not committed may be older.
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

// LastCommitAge is SinceCommit for people.
func (s Recording) LastCommitAge() string {
	return duration.HumanDuration(s.SinceCommit())
}

// SinceCommit is the age of the newest commit when the status was read.
func (s Recording) SinceCommit() time.Duration {
	return time.Duration(s.LastCommitAgeSeconds * float64(time.Second))
}

// String says it in one line.
func (s Recording) String() string {
	switch {
	case !s.Now:
		return fmt.Sprintf("no, nobody since %s", When(s.Since))
	case s.Since.IsZero():
		return fmt.Sprintf("%s is starting, last commit %s ago", s.By, s.LastCommitAge())
	}
	return fmt.Sprintf("yes, by %s since %s, last commit %s ago", s.By, When(s.Since), s.LastCommitAge())
}

// LastCommit is the time of the newest commit. The start of an epoch is one.
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

// When is a time with its age, of which the second is for people.
func When(t time.Time) string {
	return fmt.Sprintf("%s (%s ago)", t.UTC().Format(time.RFC3339), Age(t))
}

// Age is how long ago a time was.
func Age(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return duration.HumanDuration(max(time.Since(t), 0))
}
