package running

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/kuberewind/kuberewind/internal/serve"
)

// answersWithin is the timeout for a server that may be busy.
const answersWithin = 2 * time.Second

// A Querier is a connection to a database, or a pool of them.
type Querier interface {
	QueryRow(ctx context.Context, sql string, args ...any) pgx.Row
}

// Identity returns a text that identifies a database, under every name of its server.
func Identity(ctx context.Context, db Querier) (identity string, err error) {
	err = db.QueryRow(ctx, `
		SELECT system_identifier || '/' || (SELECT oid FROM pg_database WHERE datname = current_database()) FROM pg_control_system()`).Scan(&identity)
	if err != nil {
		return "", fmt.Errorf("read the identity of the database: %w", err)
	}
	return identity, nil
}

// Find returns a server of a cluster in a database that answers, or nil. Each text of skipped says why a file was not used.
func Find(ctx context.Context, folders []string, database, cluster string) (found *Server, skipped []string, err error) {
	for _, folder := range folders {
		names, err := filesIn(folder)
		if err != nil {
			return nil, skipped, err
		}
		for _, name := range names {
			s, err := read(name)
			if err != nil {
				skipped = append(skipped, err.Error())
				continue
			}
			if s.Database != database || s.Cluster != cluster {
				continue
			}
			alive, err := s.answers(ctx)
			switch {
			case ctx.Err() != nil:
				return nil, skipped, context.Cause(ctx)
			case err != nil:
				skipped = append(skipped, fmt.Sprintf("%s: %v", name, err))
			case alive:
				return s, skipped, nil
			default:
				_ = os.Remove(name) // If this fails, the next Find removes it.
			}
		}
	}
	return nil, skipped, nil
}

// filesIn returns the files of servers in a folder, which may not exist.
func filesIn(folder string) (names []string, err error) {
	entries, err := os.ReadDir(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	for _, entry := range entries {
		if ours, _ := filepath.Match(pattern, entry.Name()); ours {
			names = append(names, filepath.Join(folder, entry.Name()))
		}
	}
	return names, err
}

// answers reports whether the server of the file answers. If it returns an error, that is unknown.
func (s *Server) answers(ctx context.Context) (bool, error) {
	ctx, cancel := context.WithTimeout(ctx, answersWithin)
	defer cancel()
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(s.CA)
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DisableKeepAlives: true}
	defer transport.CloseIdleConnections()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL+serve.HealthPath, nil)
	if err != nil {
		return false, nil
	}
	request.Header.Set("Authorization", "Bearer "+s.Token)
	response, err := transport.RoundTrip(request)
	if errors.Is(err, context.DeadlineExceeded) {
		return false, fmt.Errorf("the server of process %d does not answer within %s", s.PID, answersWithin)
	}
	if err != nil {
		return false, nil
	}
	return response.StatusCode == http.StatusOK, response.Body.Close()
}
