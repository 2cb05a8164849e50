package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"github.com/jackc/pgx/v5"
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/config"
	"github.com/kuberewind/kuberewind/internal/database"
	"github.com/kuberewind/kuberewind/internal/election"
	"github.com/kuberewind/kuberewind/internal/erasure"
	"github.com/kuberewind/kuberewind/internal/erasure/target"
	"github.com/kuberewind/kuberewind/internal/recorder"
	"github.com/kuberewind/kuberewind/internal/reports"
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
		kept, err := target.Find(ctx, conn, cfg, &options)
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
		return p.print(f.output, report, func(bool) error { return reports.Erased(p.out, report, kept) })
	})
}
