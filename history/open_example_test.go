package history_test

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/kuberewind/kuberewind/history"
)

// printCluster prints all objects that lived ten minutes ago, from the embedded database of a recorder.
func printCluster(ctx context.Context) error {
	dir := filepath.Join(os.Getenv("HOME"), ".local/share/kuberewind/postgres")
	record, err := history.Open(ctx, "host="+dir+"/run user=kuberewind dbname=kuberewind passfile="+dir+"/pgpass", history.Options{})
	if err != nil {
		return err
	}
	defer record.Close()
	point, err := record.Resolve(ctx, history.Ago(10*time.Minute), history.Scope{})
	if err != nil {
		return err
	}
	_, err = record.Rebuild(ctx, point, history.Scope{}, history.RebuildOptions{}, func(o history.Object) error {
		fmt.Println(o.Stream.Kind, o.Namespace, o.Name)
		return nil
	})
	return err
}

// The example opens the embedded database through its socket while a recorder runs.
func ExampleOpen() {
	if err := printCluster(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
