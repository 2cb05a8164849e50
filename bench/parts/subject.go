package parts

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/bench/data"
	"github.com/kuberewind/kuberewind/bench/measure"
	"github.com/kuberewind/kuberewind/bench/serve"
)

// A subject is a child that runs on a served cluster.
type subject struct {
	pid     int
	started time.Time
	dir     string
	ask     io.WriteCloser
	answers *json.Decoder
	ended   chan struct{} // closed when it has ended
	err     error         // how; set before ended is closed
}

// begin starts a child; CPU and memory are those of its process. Its log is in dir.
func begin(ctx context.Context, name string, j job) (*subject, error) {
	cmd, err := measure.Command(ctx, name, j)
	if err != nil {
		return nil, err
	}
	first := cmd.Stdin
	cmd.Stdin = nil
	s := &subject{dir: j.Dir, ended: make(chan struct{}), started: time.Now()}
	if s.ask, err = cmd.StdinPipe(); err != nil {
		return nil, err
	}
	answers, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	s.answers = json.NewDecoder(answers)
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	s.pid = cmd.Process.Pid
	go func() {
		s.err = cmd.Wait()
		close(s.ended)
	}()
	if _, err = io.Copy(s.ask, first); err != nil {
		return nil, errors.Join(err, s.end())
	}
	return s, nil
}

// usage asks the child, which collects its garbage first or not.
func (s *subject) usage(collect bool) (u usage, err error) {
	if _, err = fmt.Fprintln(s.ask, collect); err == nil {
		err = s.answers.Decode(&u)
	}
	if err != nil {
		return u, fmt.Errorf("a part of the suite does not answer: %w", errors.Join(err, s.end()))
	}
	return u, nil
}

// end has the child stop as at SIGTERM, and waits for it. The error has the end of a recorder's log.
func (s *subject) end() error {
	_ = s.ask.Close() // it may have ended
	<-s.ended
	if s.err == nil {
		return nil
	}
	text, err := os.ReadFile(filepath.Join(s.dir, logName))
	if errors.Is(err, os.ErrNotExist) {
		return s.err
	}
	return fmt.Errorf("%w: %s", errors.Join(s.err, err), text[max(0, len(text)-2000):])
}

// poll is how often the measure looks whether something has happened.
const poll = 20 * time.Millisecond

// until waits for something to come about while the child runs.
func (s *subject) until(ctx context.Context, what string, is func() (bool, error)) error {
	ticker := time.NewTicker(poll)
	defer ticker.Stop()
	for {
		if done, err := is(); done || err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-s.ended:
			return fmt.Errorf("before %s: %w", what, errors.Join(errors.New("a part of the suite has ended"), s.end()))
		case <-ctx.Done():
			return fmt.Errorf("before %s: %w", what, ctx.Err())
		}
	}
}

// A served is a cluster that children follow, with a database server beside it.
type served struct {
	*serve.Server
	set        data.Set
	dir        string // of what children need
	kubeconfig string
	database   *measure.Server
}

// onServed serves a Set on a server.
func onServed(run *measure.Run, database *measure.Server, set data.Set, rate float64, use func(*served) error) (err error) {
	dir, err := os.MkdirTemp(run.Dir, "kuberewind-bench-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(dir)) }()
	s := &served{set: set, dir: dir, kubeconfig: filepath.Join(dir, "kubeconfig"), database: database}
	frames := filepath.Join(dir, "frames")
	if err := os.Mkdir(frames, 0o700); err != nil {
		return err
	}
	if s.Server, err = serve.Start(set, serve.Options{Dir: frames, Rate: rate}); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if err := os.WriteFile(s.kubeconfig, s.Kubeconfig(), 0o600); err != nil {
		return err
	}
	return use(s)
}

// record starts a recorder, with data of its own but a key that all share.
func (s *served) record(ctx context.Context, database string) (*subject, error) {
	dir, err := os.MkdirTemp(s.dir, "recorder-")
	if err != nil {
		return nil, err
	}
	// Another key would be refused by a record that begins as a copy of another's.
	if err := os.WriteFile(filepath.Join(dir, "redaction.key"), []byte("0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\n"), 0o600); err != nil {
		return nil, err
	}
	return begin(ctx, recorderChild, job{Kubeconfig: s.kubeconfig, Database: database, Dir: dir})
}

// listed waits until all first lists are on record.
func (s *served) listed(ctx context.Context, of *subject, db *pgx.Conn) error {
	return of.until(ctx, "all lists are on record", func() (done bool, err error) {
		err = db.QueryRow(ctx, `SELECT count(*) FILTER (WHERE synced) >= $1 AND count(*) FILTER (WHERE NOT synced) = 0 FROM kuberewind.streams`, len(s.set.Resources())).Scan(&done)
		return done, err
	})
}

// recorded waits until so many deltas are on record.
func (s *served) recorded(ctx context.Context, of *subject, db *pgx.Conn, seq int) error {
	return of.until(ctx, fmt.Sprintf("%d deltas are on record", seq), func() (done bool, err error) {
		err = db.QueryRow(ctx, `SELECT coalesce(max(seq), 0) >= $1 FROM kuberewind.heads`, seq).Scan(&done)
		return done, err
	})
}

// watched waits until each resource is watched.
func (s *served) watched(ctx context.Context, of *subject) error {
	return of.until(ctx, "all resources are watched", func() (bool, error) { return s.Progress().Watched, nil })
}

// on uses a connection.
func on(ctx context.Context, database string, do func(*pgx.Conn) error) error {
	conn, err := pgx.Connect(ctx, database)
	if err != nil {
		return err
	}
	return errors.Join(do(conn), conn.Close(context.WithoutCancel(ctx)))
}
