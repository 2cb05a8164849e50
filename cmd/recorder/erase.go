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

// eraseFlags holds the flags of the command line, not yet checked.
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
			"from checkpoints, and from the recorded discovery. The command writes \"[erased N]\" in its place. It also finds the value within\n" +
			"a longer text, in JSON in a text, and in base64. Without --yes it changes nothing and shows the affected rows.\n\n" +
			"--database must name the login that owns the record; no other login can change it. The record keeps who erased, when, why and\n" +
			"which rows (the view erasures), in the chain that \"replay verify\" checks, but not the value. A running recorder holds the value\n" +
			"in memory: it ends with exit code 4; start it again. Older copies stay in backups, replicas and the write-ahead log.\n" +
			"They stay in the files of the database until VACUUM FULL: see docs/retention.md.\n\n" +
			"Exit codes:\n" +
			"  0   done, or the affected rows were shown\n" +
			"  1   failed, and nothing was changed\n" +
			"  2   wrong usage\n" +
			"  3   the database or the redaction key cannot be used, or deltas wait in the\n" +
			"      spool",
		Example: `  recorder erase --value-from-file leaked.txt
  pass show db | recorder erase --value-from-file - --in secrets/shop/db \
    --reason 'ticket 4711' --yes`,
		Args: noArguments,
		RunE: func(cmd *cobra.Command, _ []string) error { return p.erase(cmd, f) },
	}
	f.output.add(cmd)
	cmd.Flags().StringVar(&f.valueFile, "value-from-file", "", "file that holds the value, - for the standard input; a line end at the end is not part of the value")
	cmd.Flags().StringVar(&f.in, "in", "", "erase only in resource[.group][/namespace[/name]]; without a group: in every group; with a trailing dot: in the core group")
	cmd.Flags().StringArrayVar(&f.paths, "path", nil, "erase only at this JSON pointer, * for every member or element; can be repeated")
	cmd.Flags().StringVar(&f.reason, "reason", "", "why; the record keeps this text, so it must not contain the value; required with --yes")
	cmd.Flags().BoolVar(&f.yes, "yes", false, "erase; this cannot be undone")
	concerns(cmd, append(databaseSettings, "cluster-name", "redaction-key-file", "spool-dir")...)
	return cmd
}

// value reads the value to erase. No flag carries the value itself: lists of processes and the history of the shell show flags.
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

// maxValue is larger than any object of Kubernetes.
const maxValue = 2 << 20

func readValue(from io.Reader) ([]byte, error) {
	text, err := io.ReadAll(io.LimitReader(from, maxValue+1))
	if err == nil && len(text) > maxValue {
		err = fmt.Errorf("the value is longer than %d bytes; no object of Kubernetes is that long", maxValue)
	}
	return text, err
}

// readValueFile refuses devices, because some never end.
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
		return mistake(cmd, errors.New("say why, with --reason: the record keeps the reason"))
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
