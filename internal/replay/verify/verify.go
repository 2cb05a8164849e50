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

const verifyLong = `Read the whole record and check that it holds: seqs have no holes and times do not go back, every version folds to the digest that
was stored with it, patches say what was there, keyframes, days, partitions, lives, positions and checkpoints agree with the deltas, and the chain of
batches, in which each commit is sealed with the one before, is unbroken. What "recorder prune" dropped is on record as dropped: from the oldest day on, and
nothing else may be missing. What "recorder erase" changed is in the chain, and nothing else passes for it. A line for each thing that does not hold; a summary.

With --against-cluster the live cluster is listed too, and the record is rebuilt at the resource version of each list: they must be equal,
object by object. Values of Secrets are hashed as the recorder does if its key can be read here, and masked on both sides if not. A
resource that the recorder cannot see now, or records in part only, is said to be so.

The chain can be checked by the recorder's login or the owner of the tables; to an auditor's the tables are closed.

With --head N:HEX, as "recorder head" printed it once, one question is answered and no other: does commit N still have this digest? The digest covers all
commits up to N. Run verify without --head, too: it checks that the rows are what the chain says. If commit N was pruned, HEX is compared only if N
was the last commit of a pruned day. A prune row is not part of the chain. The auditor's role may ask.

With --activity, only the counts that were made ahead for the timeline are checked: each is counted again, from the deltas. They are derived, and nothing of
the record depends on them. The auditor's role may ask.

-o json prints one object: with --activity, holds, deltas and blocks (counted again), missing (deltas not counted ahead), other (deltas counted by another
version) and findings; with --head, outcome (equal, different, pruned), head, found, newest, day, fromPrune and text; else holds, checked (numbers), findings (check, seq, text), chain (checked, batches, deltas, anchored, erasures, erased), and with --against-cluster
resources (group, resource, scope, status: equal, different, unproven; objects, resourceVersion, masked, text).

Exit codes: 0 everything holds, 1 something does not, or could not be checked; with --head 0 the commit has this digest, 1 it has another or is missing, 3 it
cannot be checked, because it was pruned; with --activity 0 all counts are right, 1 one is not.`

const verifyExample = `  # Does the record hold?
  %[1]s verify

  # Has anybody changed what was recorded up to a head that you kept?
  %[1]s verify --head "$(cat head-of-monday)"

  # Are the counts right that the timeline uses?
  %[1]s verify --activity

  # Is it what the cluster is?
  %[1]s verify --against-cluster --context production`

// checkCluster is what the command checks beside the checks of a record.
const checkCluster = "cluster"

// verifyCommand is one call of verify.
type verifyCommand struct {
	env *env.Env

	output         string
	againstCluster bool
	timeout        time.Duration
	keyFile        string
	head           string // N:HEX, kept elsewhere
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
	flags.BoolVar(&v.againstCluster, "against-cluster", false, "compare the record with the live cluster too (--kubeconfig, --context)")
	// A stream without changes learns where the server is by bookmarks, which come about once a minute.
	flags.DurationVar(&v.timeout, "timeout", 90*time.Second, "with --against-cluster, how long to wait for the record to reach what was listed")
	flags.StringVar(&v.keyFile, "redaction-key-file", "", "the recorder's key of the hashes of Secret values (default: redaction.key in --data-dir)")
	flags.StringVar(&v.head, "head", "", "compare with a head of the chain, N:HEX, that was kept elsewhere; check nothing else")
	flags.BoolVar(&v.countsOnly, "activity", false, "count again what was counted ahead for the timeline; check nothing else")
	flags.StringVarP(&v.output, "output", "o", output.Text, "text or json")
	return cmd
}

// Report says what holds. Its JSON form is public: documented in the help of verify.
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
		return env.Mistake(cmd, fmt.Errorf("--output %q is none of text, json", v.output))
	case v.timeout < 0:
		return env.Mistake(cmd, fmt.Errorf("--timeout %s is less than nothing", v.timeout))
	case v.againstCluster && cmd.Flags().Changed("head"):
		return env.Mistake(cmd, errors.New("--head and --against-cluster exclude each other"))
	case v.countsOnly && (v.againstCluster || cmd.Flags().Changed("head")):
		return env.Mistake(cmd, errors.New("--activity checks nothing else: leave out --head and --against-cluster"))
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
	// The cluster first: what is wrong with the access to it shows before the long work.
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

// found notes a finding, and prints it at once: verification can take long.
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
	for f, err := range verify.Record(ctx, rec.Record, verify.Options{Progress: progress.Tell, Counts: &counts}) {
		if err != nil {
			return err
		}
		progress.End() // a finding is not to stand on the line of the bar
		v.found(report, verifyFinding{Check: string(f.Check), Seq: f.Seq, Text: f.Text})
	}
	report.Checked = verifyCounts{
		Deltas: counts.Deltas, Patches: counts.Patches, Keyframes: counts.Keyframes, Lives: counts.Lives, Live: counts.Live, Days: counts.Days,
		Streams: counts.Streams, Checkpoints: counts.Checkpoints, CheckpointObjects: counts.CheckpointObjects,
	}
	return nil
}

func (v *verifyCommand) chain(ctx context.Context, rec *env.Record, report *Report) error {
	progress := v.env.Progress("verifying the chain of batches")
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
		v.found(report, verifyFinding{Check: string(verify.CheckChain), Text: fmt.Sprintf("batch %d: %s", b.Batch, b.Reason)})
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
		fmt.Fprintf(out, "chain: %d batches with %d deltas, from the first one on\n", r.Chain.Batches, r.Chain.Deltas)
	default:
		fmt.Fprintf(out, "chain: %d batches with %d deltas, from the oldest that is left on\n", r.Chain.Batches, r.Chain.Deltas)
	}
	if r.Chain.Erasures > 0 {
		fmt.Fprintf(out, "chain: %d erasures are part of it, which changed %d deltas; the view erasures says by whom and why\n", r.Chain.Erasures, r.Chain.Erased)
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
		return "The record does not hold: 1 finding."
	case !r.Holds:
		return fmt.Sprintf("The record does not hold: %d findings.", len(r.Findings))
	case r.unchecked:
		return "What was checked holds; not all could be checked."
	}
	return "The record holds."
}

func sortResources(all []clusterResource) {
	slices.SortFunc(all, func(a, b clusterResource) int {
		return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Resource, b.Resource), cmp.Compare(a.Scope, b.Scope))
	})
}
