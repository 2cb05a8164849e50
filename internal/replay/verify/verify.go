package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgerrcode"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/cobra"

	"github.com/kuberewind/kuberewind/internal/render"
	"github.com/kuberewind/kuberewind/internal/replay/env"
	"github.com/kuberewind/kuberewind/internal/replay/output"
	"github.com/kuberewind/kuberewind/verify"
)

const verifyLong = `Read the whole record and check it:
  - no seq is missing, and times do not go back
  - every version folds to the digest that was stored with it
  - every patch matches the version to which it applies
  - keyframes, days, partitions, lives, positions and checkpoints agree with
    the deltas
  - the chain of commits, in which each commit seals the previous commit, is
    unbroken
  - no delta is missing, except the oldest days, if a prune ("recorder prune")
    is on record for them
  - no delta was changed, except by an erasure ("recorder erase") that is part
    of the chain
verify prints a line for each fault that it finds, and a summary.

With --against-cluster, verify also lists the live cluster, and rebuilds the record at the resource version of each list. Both must be equal, object by object.
If verify can read the recorder's key, it hashes the values of Secrets like the recorder. If not, it masks them on both sides. verify prints a line for each
resource that it cannot compare, or that the recorder records with a filter.

Only the recorder's login or the owner of the tables can check the chain. An auditor's login may not read the tables.

With --head N:HEX, which "recorder head" printed earlier, verify checks only whether commit N still has this digest. The digest covers all commits up to N. Also
run verify without --head: it checks that the rows match the chain. If commit N was pruned, verify can compare HEX only if N was the last commit of a pruned
day. A prune row is not part of the chain. An auditor's login may use --head.

With --activity, verify checks only the precomputed counts of the timeline: it computes each count again from the deltas. The record does not depend on these
counts. An auditor's login may use --activity.

-o json prints one object: with --activity, holds, deltas and blocks (counted again), missing (deltas without precomputed counts), other (deltas counted by
another version) and findings; with --head, outcome (equal, different, pruned), head, found, newest, day, fromPrune and text; without them, holds, checked
(numbers), findings (check, seq, text), chain (checked, batches, deltas, anchored, erasures, erased), and with --against-cluster resources (group, resource,
scope, status: equal, different, unproven; objects, resourceVersion, masked, text).

Exit codes:
  0   no fault was found; --head: the commit has this digest;
      --activity: all counts are right
  1   a check failed or could not run; --head: the commit has another digest or
      is missing; --activity: a count is wrong
  3   --head: the commit was pruned, so it cannot be checked`

const verifyExample = `  # Does the record have a fault?
  %[1]s verify

  # Has the record changed up to a head that you kept?
  %[1]s verify --head "$(cat head-of-monday)"

  # Are the counts of the timeline right?
  %[1]s verify --activity

  # Does the record equal the live cluster?
  %[1]s verify --against-cluster --context production`

// checkCluster is the name of the comparison with the cluster, in addition to the checks of package verify.
const checkCluster = "cluster"

// verifyCommand is one call of verify.
type verifyCommand struct {
	env *env.Env

	output         string
	againstCluster bool
	timeout        time.Duration
	keyFile        string
	head           string // N:HEX, which the user kept
	countsOnly     bool
}

// NewCommand makes the command verify.
func NewCommand(e *env.Env) *cobra.Command {
	v := &verifyCommand{env: e}
	cmd := &cobra.Command{
		Use:     "verify",
		Short:   "Check the whole record, by itself and against the cluster",
		Long:    verifyLong,
		Example: fmt.Sprintf(verifyExample, e.Command),
		Args:    cobra.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return v.run(cmd) },
	}
	flags := cmd.Flags()
	flags.BoolVar(&v.againstCluster, "against-cluster", false, "also compare the record with the live cluster (--kubeconfig, --context)")
	// A stream without changes gets the server's resource version from bookmarks, about once a minute.
	flags.DurationVar(&v.timeout, "timeout", 90*time.Second, "with --against-cluster, how long to wait until the record reaches the resource version of a list")
	flags.StringVar(&v.keyFile, "redaction-key-file", "", "the recorder's key of the hashes of Secret values (default: redaction.key in --data-dir)")
	flags.StringVar(&v.head, "head", "", "compare with a head of the chain, N:HEX, that you kept; check nothing else")
	flags.BoolVar(&v.countsOnly, "activity", false, "check the precomputed counts of the timeline; check nothing else")
	flags.StringVarP(&v.output, "output", "o", output.Text, "text or json")
	return cmd
}

// Report is the result of verify. Its JSON form is public: the help of verify documents it.
type Report struct {
	Cluster   string            `json:"cluster"`
	Holds     bool              `json:"holds"`
	Checked   verifyCounts      `json:"checked"`
	Chain     chainReport       `json:"chain"`
	Findings  []verifyFinding   `json:"findings"`
	Resources []clusterResource `json:"resources,omitempty"`

	unchecked bool
}

type verifyCounts struct {
	Deltas            int64 `json:"deltas"`
	Patches           int64 `json:"patches"`
	Keyframes         int64 `json:"keyframes"`
	Lives             int64 `json:"lives"`
	Live              int64 `json:"live"`
	Days              int64 `json:"days"`
	Streams           int64 `json:"streams"`
	Checkpoints       int64 `json:"checkpoints"`
	CheckpointObjects int64 `json:"checkpointObjects"`
}

type chainReport struct {
	Checked  bool   `json:"checked"`
	Batches  int64  `json:"batches"`
	Deltas   int64  `json:"deltas"`
	Erasures int64  `json:"erasures,omitempty"`
	Erased   int64  `json:"erased,omitempty"`
	Anchored bool   `json:"anchored"`
	Text     string `json:"text,omitempty"`
}

type verifyFinding struct {
	Check string `json:"check"`
	Seq   int64  `json:"seq,omitempty"`
	Text  string `json:"text"`
}

func (v *verifyCommand) run(cmd *cobra.Command) error {
	switch {
	case v.output != output.Text && v.output != output.JSON:
		return env.Mistake(cmd, fmt.Errorf("--output %q: use one of text, json", v.output))
	case v.timeout < 0:
		return env.Mistake(cmd, fmt.Errorf("--timeout %s is negative", v.timeout))
	case v.againstCluster && cmd.Flags().Changed("head"):
		return env.Mistake(cmd, errors.New("--head and --against-cluster exclude each other"))
	case v.countsOnly && (v.againstCluster || cmd.Flags().Changed("head")):
		return env.Mistake(cmd, errors.New("--activity checks nothing else: omit --head and --against-cluster"))
	case v.countsOnly:
		return v.compareActivity(cmd.Context())
	case cmd.Flags().Changed("head"):
		return v.compareHead(cmd.Context())
	}
	ctx := cmd.Context()
	rec, err := v.env.Open(ctx)
	if err != nil {
		return err
	}
	report, err := v.verify(ctx, rec)
	if err = errors.Join(err, rec.Close()); err != nil {
		return err
	}
	if err := v.print(report); err != nil {
		return err
	}
	if !report.Holds || report.unchecked {
		return &env.ExitError{Code: 1}
	}
	return nil
}

func (v *verifyCommand) verify(ctx context.Context, rec *env.Record) (*Report, error) {
	report := &Report{Cluster: rec.Cluster().Name, Findings: []verifyFinding{}}
	// Compare with the cluster first, so that problems of the access show before the long work.
	if v.againstCluster {
		if err := v.cluster(ctx, rec, report); err != nil {
			return nil, err
		}
	}
	if err := v.record(ctx, rec, report); err != nil {
		return nil, err
	}
	if err := v.chain(ctx, rec, report); err != nil {
		return nil, err
	}
	report.Holds = len(report.Findings) == 0
	return report, nil
}

// found adds a finding, and prints it at once, because verification can take long.
func (v *verifyCommand) found(report *Report, f verifyFinding) {
	report.Findings = append(report.Findings, f)
	if v.output == output.Text {
		fmt.Fprintln(v.env.IOStreams.Out, render.Line(f.line()))
	}
}

func (f verifyFinding) line() string {
	where := ""
	if f.Seq != 0 {
		where = fmt.Sprintf("seq %d: ", f.Seq)
	}
	return fmt.Sprintf("FAIL %s: %s%s", f.Check, where, f.Text)
}

func (v *verifyCommand) record(ctx context.Context, rec *env.Record, report *Report) error {
	progress := v.env.Progress("verifying the record")
	defer progress.End()
	var counts verify.Counts
	for f, err := range verify.Record(ctx, rec.Record, verify.Options{Progress: progress.Update, Counts: &counts}) {
		if err != nil {
			return err
		}
		progress.End() // a finding must not share the line of the bar
		v.found(report, verifyFinding{Check: string(f.Check), Seq: f.Seq, Text: f.Text})
	}
	report.Checked = verifyCounts{
		Deltas: counts.Deltas, Patches: counts.Patches, Keyframes: counts.Keyframes, Lives: counts.Lives, Live: counts.Live, Days: counts.Days,
		Streams: counts.Streams, Checkpoints: counts.Checkpoints, CheckpointObjects: counts.CheckpointObjects,
	}
	return nil
}

func (v *verifyCommand) chain(ctx context.Context, rec *env.Record, report *Report) error {
	progress := v.env.Progress("verifying the chain of commits")
	defer progress.End()
	chain, err := verify.Chain(ctx, rec.Pool(), rec.Cluster().Name)
	if denied(err) {
		report.unchecked = true
		report.Chain.Text = "this login may not read the tables: check the chain with the recorder's login or the owner's"
		return nil
	}
	if err != nil {
		return err
	}
	report.Chain = chainReport{Checked: true, Batches: chain.Batches, Deltas: chain.Deltas, Erasures: chain.Erasures, Erased: chain.Erased, Anchored: chain.Anchored}
	for _, b := range chain.Breaks {
		v.found(report, verifyFinding{Check: string(verify.CheckChain), Text: fmt.Sprintf("commit %d: %s", b.Batch, b.Reason)})
	}
	return nil
}

func denied(err error) bool {
	var e *pgconn.PgError
	return errors.As(err, &e) && e.Code == pgerrcode.InsufficientPrivilege
}

func (v *verifyCommand) print(r *Report) error {
	out := v.env.IOStreams.Out
	if v.output == output.JSON {
		return output.WriteJSON(out, r, true)
	}
	c := &r.Checked
	fmt.Fprintf(out, "record: %d deltas of %d lives (%d alive) folded and compared with their digests; %d patches, %d keyframes, %d streams, %d days, %d checkpoints of %d objects\n",
		c.Deltas, c.Lives, c.Live, c.Patches, c.Keyframes, c.Streams, c.Days, c.Checkpoints, c.CheckpointObjects)
	switch {
	case !r.Chain.Checked:
		fmt.Fprintf(out, "chain: not checked: %s\n", r.Chain.Text)
	case r.Chain.Anchored:
		fmt.Fprintf(out, "chain: %d commits with %d deltas, from the first commit on\n", r.Chain.Batches, r.Chain.Deltas)
	default:
		fmt.Fprintf(out, "chain: %d commits with %d deltas, from the oldest remaining commit on\n", r.Chain.Batches, r.Chain.Deltas)
	}
	if r.Chain.Erasures > 0 {
		fmt.Fprintf(out, "chain: %d erasures are part of it, which changed %d deltas; the view erasures has the user and the reason\n", r.Chain.Erasures, r.Chain.Erased)
	}
	if v.againstCluster {
		printResources(out, r.Resources)
	}
	_, err := fmt.Fprintln(out, r.verdict())
	return err
}

func (r *Report) verdict() string {
	switch {
	case len(r.Findings) == 1:
		return "verify found 1 fault in the record."
	case !r.Holds:
		return fmt.Sprintf("verify found %d faults in the record.", len(r.Findings))
	case r.unchecked:
		return "verify found no fault in the parts that it could check. It could not check the others."
	}
	return "verify found no fault in the record."
}

func sortResources(all []clusterResource) {
	slices.SortFunc(all, func(a, b clusterResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Scope, b.Scope))
	})
}
