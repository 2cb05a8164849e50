package history_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"

	"github.com/jackc/pgx/v5"
)

// countDeltas queries the embedded database of a recorder in SQL, without a package of kuberewind.
func countDeltas(ctx context.Context) error {
	dir := filepath.Join(os.Getenv("HOME"), ".local/share/kuberewind/postgres")
	conn, err := pgx.Connect(ctx, "host="+dir+"/run user=kuberewind dbname=kuberewind passfile="+dir+"/pgpass")
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	var deltas int
	err = conn.QueryRow(ctx, `SELECT count(*) FROM kuberewind.deltas WHERE observed_at > now() - interval '1 hour'`).Scan(&deltas)
	if err != nil {
		return err
	}
	fmt.Println(deltas, "deltas in the last hour")
	return nil
}

// Any client of PostgreSQL can read the record.
func Example_sql() {
	if err := countDeltas(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
