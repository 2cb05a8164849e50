package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/deltafifo/spool"
	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/erasure"
	"github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/internal/redact"
	"github.com/kuberewind/kuberewind/internal/spooling"
	"github.com/kuberewind/kuberewind/internal/version"
)

// eraseFlags are as they were given.
type eraseFlags struct {
	output    outputFlag
	valueFile string
	in        string
	paths     []string
	reason    string
	yes       bool
}

func (p *program) eraseCommand() *cobra.Command {
	var f eraseFlags
	cmd := &cobra.Command{
		Use:   "erase",
		Short: "Remove a leaked value from the whole record",
		Long: "Remove a leaked value from the whole record of a cluster: from each version of each object, from patches and their old values,\n" +
			"from checkpoints, and from the recorded discovery. \"[erased N]\" takes its place. The value is also found within a longer text,\n" +
			"in JSON in a text, and in base64. Without --yes nothing is changed: the affected rows are shown.\n\n" +
			"--database names the login that owns the record; no other can change it. The record keeps who erased, when, why and which rows\n" +
			"(the view erasures), in the chain that \"replay verify\" checks, but not the value. A running recorder holds the value in\n" +
			"memory: it ends with exit code 4 and has to be started again. Older copies stay in backups, replicas and the write-ahead\n" +
			"log. They stay in the files of the database until VACUUM FULL: see docs/retention.md.\n\n" +
			"Exit codes: 0 done, or shown; 1 failed, and nothing was changed; 3 the database cannot be used.",
		Example: `  recorder erase --value-from-file leaked.txt
  pass show db | recorder erase --value-from-file - --in secrets/shop/db --reason 'ticket 4711' --yes`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.erase(cmd, f) },
	}
	f.output.add(cmd)
	cmd.Flags().StringVar(&f.valueFile, "value-from-file", "", "file that holds the value, - for the standard input; a line end after it is not part of it")
	cmd.Flags().StringVar(&f.in, "in", "", "only there: resource[.group][/namespace[/name]]; without a group in every group, with a trailing dot in the core group")
	cmd.Flags().StringArrayVar(&f.paths, "path", nil, "only there: a JSON pointer, * for every member or element; may be given again")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why, put on record, so without the value; needed with --yes")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "erase; there is no way back")
	concerns(cmd, append(databaseSettings, "cluster-name", "redaction-key-file", "spool-dir")...)
	return cmd
}

// value reads what is to go. It is no flag: those show in lists of processes, and in the history of the shell.
func (p *program) value(f *eraseFlags) (text []byte, err error) {
	switch f.valueFile {
	case "":
		return nil, errors.New("say where the value is, with --value-from-file")
	case "-":
		text, err = readValue(p.in)
	default:
		text, err = readValueFile(f.valueFile)
	}
	if err != nil {
		return nil, fmt.Errorf("--value-from-file: %w", err)
	}
	return bytes.TrimSuffix(bytes.TrimSuffix(text, []byte("\n")), []byte("\r")), nil
}

// mostValue is more than an object of Kubernetes can be.
const mostValue = 2 << 20

func readValue(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, mostValue+1))
	if err == nil && len(text) > mostValue {
		err = fmt.Errorf("the value is longer than %d bytes, and no object of Kubernetes is", mostValue)
	}
	return text, err
}

// readValueFile takes no device: some have no end.
func readValueFile(path string) (text []byte, err error) {
	info, err := os.Stat(path)
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() && info.Mode()&fs.ModeNamedPipe == 0 {
		return nil, fmt.Errorf("%s is neither a file nor a pipe", path)
	}
	file, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	text, err = readValue(file)
	return text, errors.Join(err, file.Close())
}

func (p *program) erase(cmd *cobra.Command, f eraseFlags) error {
	if err := f.output.validate(); err != nil {
		return err
	}
	if f.yes && f.reason == "" {
		return mistake(cmd, errors.New("say why, with --reason: it is put on record"))
	}
	text, err := p.value(&f)
	if err != nil {
		return mistake(cmd, err)
	}
	options := erasure.Options{
		Value: text, In: f.in, Paths: f.paths, Reason: f.reason, DryRun: !f.yes, Recorder: election.Name() + " erase", Version: version.String(),
	}
	return p.withRecord(cmd, func(ctx context.Context, cfg config.Config, _ *database.Database, conn *pgx.Conn) error {
		kept, err := findErasable(ctx, conn, cfg, &options)
		if err != nil {
			return &recorder.EnvironmentError{Err: err}
		}
		report, err := erasure.Erase(ctx, conn, options)
		if errors.Is(err, erasure.ErrValue) || errors.Is(err, erasure.ErrScope) {
			return mistake(cmd, err)
		}
		if err != nil {
			return err
		}
		return p.print(f.output, report, func(bool) error { return p.printErased(report, kept) })
	})
}

// findErasable completes the options with the cluster and its key, and gives the paths of what was spooled and will not be written.
func findErasable(ctx context.Context, conn *pgx.Conn, cfg config.Config, o *erasure.Options) (kept []string, err error) {
	rows, err := conn.Query(ctx, `SELECT cluster, uid, name, key_fingerprint FROM kuberewind.clusters WHERE $1 IN ('', name) ORDER BY name`, cfg.ClusterName)
	if err != nil {
		return nil, err
	}
	var names []string
	var name, uid string
	var fingerprint []byte
	if _, err = pgx.ForEachRow(rows, []any{&o.Cluster, &uid, &name, &fingerprint}, func() error {
		names = append(names, name)
		return nil
	}); err != nil {
		return nil, err
	}
	switch len(names) {
	case 0:
		return nil, errors.New("the record holds no such cluster")
	case 1:
	default:
		return nil, fmt.Errorf("the record holds several clusters (%s): name one with --cluster-name", strings.Join(names, ", "))
	}
	file, err := redact.ReadKey(cfg.KeyFile())
	if err != nil {
		return nil, err
	}
	key := file.Of(uid)
	if !bytes.Equal(key.Fingerprint(), fingerprint) {
		return nil, fmt.Errorf("cluster %s was recorded with another redaction key than %s: name the recorder's with --redaction-key-file", name, cfg.KeyFile())
	}
	o.Keyed = func(text []byte) []byte { return key.Sum("erasure", text) }
	return keptInSpool(ctx, conn, filepath.Join(cfg.Spool(), uid), uid, fingerprint)
}

// keptInSpool gives the paths of what lies in a spool's folder and will not be written. It is an error where deltas wait that a recorder is going to write:
// they would bring the value back, or be lost.
func keptInSpool(ctx context.Context, conn *pgx.Conn, dir, uid string, fingerprint []byte) (kept []string, err error) {
	left, err := spooling.Left(ctx, conn, dir, uid, fingerprint)
	if errors.Is(err, spooling.ErrWaits) {
		err = fmt.Errorf("%w. They may hold the value: let it write them first, kuberewind_spool_entries is 0 then", err)
		if !errors.Is(err, spool.ErrLocked) {
			aside := filepath.Join(dir, spool.AsidePrefix+"by-hand")
			err = fmt.Errorf("%w. If none will run here again, set them aside: mkdir -p %[2]s && mv %[3]s/*.seg %[2]s/ (deltas that no API server remembers become a gap)", err, aside, dir)
		}
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("cannot read whether deltas in the spool hold the value; run this as the recorder's user: %w", err)
	}
	c, err := spool.Look(dir)
	if left {
		kept = append(kept, filepath.Join(dir, "*.seg"))
	}
	return append(kept, c.Aside...), err
}

func (p *program) printErased(r erasure.Report, kept []string) error {
	t := newTable(p.out)
	for _, o := range r.Objects {
		t.titled("RESOURCE", "NAMESPACE", "NAME", "UID", "DELTAS")
		t.row(o.Resource, o.Namespace, o.Name, o.UID, fmt.Sprint(o.Deltas))
	}
	if err := t.flush(); err != nil {
		return err
	}
	done := "nothing was found"
	switch {
	case r.Deltas+r.Documents == 0:
	case r.DryRun:
		done = "would be erased"
	default:
		done = fmt.Sprintf("erased, on record as erasure %d", r.Erasure)
	}
	fmt.Fprintf(p.out, "%d deltas of %d objects, %d documents of the server: %s; %d checkpoints that go are made again\n", r.Deltas, len(r.Objects), r.Documents, done, r.Checkpoints)
	for _, o := range r.Objects {
		if o.Holds {
			fmt.Fprintf(p.out, "Warning: %s %s/%s holds it still, and its next version would bring it back: change it there, then erase once more%s\n", o.Resource, o.Namespace, o.Name, redactions(&o))
		}
	}
	if r.Named > 0 {
		fmt.Fprintf(p.out, "Warning: %d objects have it in their name or namespace, where it stays\n", r.Named)
	}
	if r.Told > 0 {
		fmt.Fprintf(p.out, "Warning: %d gaps, streams, configurations of recorders, managers of deltas, or reasons of prunes and erasures speak of it, where it stays\n", r.Told)
	}
	for _, path := range kept {
		fmt.Fprintf(p.out, "Warning: what was spooled and no recorder will write may hold it: remove %s\n", path)
	}
	if r.Erasure > 0 {
		fmt.Fprintln(p.out, "A recorder that ran meanwhile may set its spool aside when it is started again, with the value in it: see recorder status there, and remove it.")
		fmt.Fprintln(p.out, "The old rows are in the files of the database until these have run, and in its write-ahead log, replicas and backups:")
		for _, day := range r.Days {
			fmt.Fprintf(p.out, "  VACUUM (FULL, ANALYZE) kuberewind.deltas_p%s;\n", strings.ReplaceAll(day, "-", ""))
		}
		fmt.Fprintln(p.out, "  VACUUM FULL kuberewind.documents, kuberewind.checkpoint_blocks; ANALYZE kuberewind.deltas_data; VACUUM FULL pg_statistic;")
	}
	return nil
}

// redactions are the rules that keep the value out from now on.
func redactions(o *erasure.Object) string {
	var rules []string
	for _, path := range o.Paths {
		resource := o.Resource
		if !strings.Contains(resource, ".") {
			resource += "." // the core group
		}
		rules = append(rules, fmt.Sprintf("--redact '%s:%s'", resource, path))
	}
	if len(rules) == 0 {
		return ""
	}
	return ", or record it with " + strings.Join(rules, " ")
}
