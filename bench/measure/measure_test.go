package measure

import (
	"bufio"
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// fixed gives one value after the other, and notes which way was run.
func fixed(order *[]string, name string, factor float64, values ...float64) Way {
	i := 0
	return Way{Name: name, Factor: factor, Run: func(context.Context, int) (Values, error) {
		*order = append(*order, name)
		v := values[i%len(values)]
		i++
		return Values{"speed": v}, nil
	}}
}

func do(t *testing.T, e Experiment) *Result {
	t.Helper()
	e.Quantities = []Quantity{{Name: "speed", Unit: "rows/s"}}
	run := &Run{Report: new(Report), Rounds: 5, Log: t.Output()}
	require.NoError(t, run.Do(t.Context(), e))
	return run.Report.Results[0]
}

func TestAVerdictKnowsTheNoise(t *testing.T) {
	compare := func(ours, theirs []float64, c Comparison) *Judgement {
		var order []string
		c.Quantity, c.Of, c.To = "speed", "ours", "theirs"
		return do(t, Experiment{Name: "verdict", Ways: []Way{fixed(&order, "ours", 0, ours...), fixed(&order, "theirs", 0, theirs...)}, Compare: []Comparison{c}}).Judged[0]
	}
	steady := []float64{30}
	j := compare(steady, []float64{10}, Comparison{AtLeast: 3, Aim: 6})
	require.Equal(t, Holds, j.Verdict)
	require.False(t, j.AimReached())
	require.Equal(t, DoesNotHold, compare(steady, []float64{10.1}, Comparison{AtLeast: 3}).Verdict)
	require.Equal(t, Reported, compare(steady, []float64{10}, Comparison{}).Verdict)
	require.Equal(t, DoesNotHold, compare(steady, []float64{10}, Comparison{AtMost: 0.35}).Verdict)

	// Of the two runs of the first way in a round, one is compared, and the other is for the noise: which comes first changes.
	shaky := []float64{20, 40, 20, 40, 30, 30, 25, 35, 35, 25}
	j = compare(shaky, []float64{10}, Comparison{AtLeast: 3})
	require.Equal(t, WithinNoise, j.Verdict)
	require.Greater(t, j.Noise, 0.1)
	require.Less(t, j.Noise, 1.0)
	require.InDelta(t, 3, j.Value, 0.001)
	require.InDelta(t, 2, j.Low, 0.001)
	require.InDelta(t, 4, j.High, 0.001)
	require.Equal(t, Holds, compare(shaky, []float64{1}, Comparison{AtLeast: 3}).Verdict)
	// Rounds that differ from each other are no noise.
	require.Zero(t, compare([]float64{20, 20, 40, 40, 30, 30, 25, 25, 35, 35}, []float64{10}, Comparison{AtLeast: 3}).Noise)

	j = compare(steady, []float64{10}, Comparison{By: Difference, AtMost: 25, Aim: 20})
	require.Equal(t, Holds, j.Verdict)
	require.True(t, j.AimReached())
	require.InDelta(t, 20, j.Value, 0.001)
	require.Equal(t, "rows/s", j.Unit)
}

func TestGrowthIsFittedAndAStepIsFound(t *testing.T) {
	grow := func(costs ...float64) (exponent, step *Judgement) {
		var order []string
		e := Experiment{Name: "growth", Grow: []Growth{{Number: "11", What: "cost", Quantity: "speed"}}}
		for i, factor := range []float64{1, 2, 5, 10} {
			e.Ways = append(e.Ways, fixed(&order, Number(factor)+"×", factor, costs[i]))
		}
		judged := do(t, e).Judged
		return judged[0], judged[1]
	}
	exponent, step := grow(3, 6, 15, 30)
	require.InDelta(t, 1, exponent.Value, 1e-9)
	require.NotEqual(t, DoesNotHold, exponent.Verdict)
	require.Equal(t, Holds, step.Verdict)
	exponent, step = grow(1, 4, 25, 100)
	require.InDelta(t, 2, exponent.Value, 1e-9)
	require.Equal(t, DoesNotHold, exponent.Verdict)
	require.Equal(t, DoesNotHold, step.Verdict)
	exponent, step = grow(20, 21, 24, 29)
	require.Less(t, exponent.Value, 0.5, "most of it is fixed")
	require.Equal(t, Holds, step.Verdict)
	exponent, step = grow(5, 5, 16, 20)
	require.Equal(t, Holds, exponent.Verdict, "it is less than linear, but")
	require.Equal(t, DoesNotHold, step.Verdict)
	require.Contains(t, step.What, "2× to 5×")
}

func TestAChartOfGrowthIsLogarithmicAndOneOfNothingIsBars(t *testing.T) {
	draw := func(costs ...float64) string {
		r := &Result{Name: "growth", Quantities: []Quantity{{Name: "cost", Unit: "s"}}, Judged: []*Judgement{{Quantity: "cost", AtMost: 1}}}
		for i, factor := range []float64{1, 10, 100} {
			r.Ways = append(r.Ways, &Measured{Name: Number(factor), Factor: factor, Values: map[string][]float64{"cost": {costs[i]}}})
		}
		var b strings.Builder
		r.charts()[0].draw(&b)
		return b.String()
	}
	require.Contains(t, draw(1, 10, 100), `points="130.0,286.0 415.0,173.0 700.0,60.0"`, "a straight line, to where linear growth ends")
	for _, text := range []string{draw(1, 0, 2), draw(0, 0, 0), draw(5, 5, 5)} {
		require.NotContains(t, text, "NaN")
		require.NotContains(t, text, "Inf")
	}
	require.NotContains(t, draw(0, 0, 0), "polyline")
}

func TestAnExperimentThatCannotBeComparedIsAnError(t *testing.T) {
	failure := errors.New("no such disk")
	var order []string
	for name, e := range map[string]Experiment{
		"a way that fails": {Ways: []Way{{Name: "a", Run: func(context.Context, int) (Values, error) { return nil, failure }}}},
		"a way that is not there": {
			Ways: []Way{fixed(&order, "a", 0, 1)}, Compare: []Comparison{{Quantity: "speed", Of: "a", To: "b", AtLeast: 1}}, Rounds: 1,
		},
		"nothing to divide by": {
			Ways: []Way{fixed(&order, "a", 0, 1), fixed(&order, "b", 0, 0)}, Compare: []Comparison{{Quantity: "speed", Of: "a", To: "b", AtLeast: 1}}, Rounds: 1,
		},
		"a quantity that was not declared": {Ways: []Way{{Name: "a", Run: func(context.Context, int) (Values, error) { return Values{"sped": 1}, nil }}}},
		"growth of one size":               {Ways: []Way{fixed(&order, "a", 1, 1)}, Grow: []Growth{{Quantity: "speed"}}, Rounds: 1},
		"growth from nothing":              {Ways: []Way{fixed(&order, "a", 1, 0), fixed(&order, "b", 2, 1)}, Grow: []Growth{{Quantity: "speed"}}, Rounds: 1},
		"noise without end": {
			Ways: []Way{fixed(&order, "a", 0, 0, 1), fixed(&order, "b", 0, 1)}, Compare: []Comparison{{Quantity: "speed", Of: "a", To: "b", AtLeast: 1}, {Quantity: "speed", Of: "b", To: "a"}}, Rounds: 1,
		},
	} {
		t.Run(name, func(t *testing.T) {
			e.Name, e.Quantities = "trouble", []Quantity{{Name: "speed", Unit: "rows/s"}}
			run := &Run{Report: new(Report), Rounds: 1, Log: t.Output()}
			require.Error(t, run.Do(t.Context(), e))
			require.Len(t, run.Report.Results, e.Rounds, "what was measured is kept")
			require.NoError(t, run.Report.JSON(io.Discard))
		})
	}
}

func TestAReportIsKeptAndShownInEveryForm(t *testing.T) {
	var order []string
	fresh := Report{Seed: 7, Size: "quick", Machine: ThisMachine(), Versions: map[string]string{"Go": "1.26"}}
	report := fresh
	run := &Run{Report: &report, Rounds: 5, Log: t.Output(), Origin: Origin{Measures: []string{"11"}, Version: "v1", Command: "bench run -only 11"}}
	quantities := []Quantity{{Name: "speed", Unit: "rows/s"}}
	require.NoError(t, run.Do(t.Context(), Experiment{
		Name: "growth", Title: "As it grows", Data: "more rows", Quantities: quantities, Ways: []Way{fixed(&order, "1×", 1, 1), fixed(&order, "10×", 10, 9)},
		Grow: []Growth{{Number: "11", What: "cost over rows", Quantity: "speed"}},
	}))
	run.End()
	run.Origin.Measures = []string{"2"}
	require.NoError(t, run.Do(t.Context(), Experiment{
		Name: "sink", Title: "The <sink> alone", Data: "some rows", Quantities: quantities,
		Ways:    []Way{fixed(&order, "ours", 0, 12_345.6), fixed(&order, `psql \copy | text`, 0, 30_000)},
		Compare: []Comparison{{Number: "2", What: "sink to copy", Quantity: "speed", Of: "ours", To: `psql \copy | text`, AtLeast: 0.8, Aim: 1}},
	}))
	require.Len(t, report.Broken(), 1)
	require.Contains(t, report.Broken()[0], "2 sink to copy: 0.412×")
	require.Equal(t, report.Broken(), report.Broken("11", "2"))
	require.Empty(t, report.Broken("11"))
	require.Equal(t, []string{"2", "12"}, report.Missing([]string{"2", "11", "12"}))

	path := filepath.Join(t.TempDir(), "results", "quick.json")
	require.NoError(t, report.Keep(path))
	read, err := fresh.Continue(path)
	require.NoError(t, err)
	require.Equal(t, &report, read)
	require.NoError(t, read.Keep(path), "the file is replaced by a whole one")
	others, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".*"))
	require.NoError(t, err)
	require.Empty(t, others)

	var table, page bytes.Buffer
	require.NoError(t, read.Table(&table))
	t.Log("\n" + table.String())
	require.Contains(t, table.String(), "12,346 (12,346 – 12,346)")
	require.Contains(t, table.String(), "does not hold")
	require.NoError(t, read.Page(&page, "charts", []string{"2", "11", "12"}))
	t.Log("\n" + page.String())
	require.Contains(t, page.String(), "| 2 | sink to copy | some rows | at least 0.8× | 1× | 0.412× | does not hold |")
	require.Contains(t, page.String(), `| psql \copy \| text | 30,000 (30,000 – 30,000) |`)
	require.Contains(t, page.String(), "not measured, or not all of it: 2, 12\n")
	require.Less(t, strings.Index(page.String(), "## 2: "), strings.Index(page.String(), "## 11: "))
	dir := t.TempDir()
	require.NoError(t, read.Charts(dir))
	for _, name := range []string{"sink.svg", "growth.svg"} {
		require.Contains(t, page.String(), "(charts/"+name+")")
		text, err := os.ReadFile(filepath.Join(dir, name))
		require.NoError(t, err)
		for d := xml.NewDecoder(bytes.NewReader(text)); err == nil; _, err = d.Token() {
			require.NoError(t, err)
		}
		require.ErrorIs(t, err, io.EOF, "the chart is well-formed")
	}
}

func TestResultsAreAddedToThoseOfTheSameKindOnly(t *testing.T) {
	path := filepath.Join(t.TempDir(), "results.json")
	first := Report{Seed: 1, Size: "quick", Versions: map[string]string{"Go": "1.26"}}
	begun, err := first.Continue(path)
	require.NoError(t, err)
	require.Equal(t, &first, begun, "there are none yet")
	begun.add(&Result{Name: "sink", Rounds: 1})
	begun.add(&Result{Name: "sink", Rounds: 2})
	require.NoError(t, begun.Keep(path))
	again, err := first.Continue(path)
	require.NoError(t, err)
	require.Equal(t, []*Result{{Name: "sink", Rounds: 2}}, again.Results, "the newer one counts")
	for what, other := range map[string]Report{
		"another seed": {Seed: 2, Size: "quick"}, "another size": {Seed: 1, Size: "full"}, "another machine": {Seed: 1, Size: "quick", Machine: Machine{Cores: 1}},
		"another Go": {Seed: 1, Size: "quick", Versions: map[string]string{"Go": "1.27"}},
	} {
		_, err := other.Continue(path)
		require.ErrorContains(t, err, "name another file", what)
	}
	require.NoError(t, again.measuredOn("17.6"))
	require.NoError(t, again.measuredOn("17.6"))
	require.ErrorContains(t, again.measuredOn("18.1"), "with PostgreSQL 17.6, and this is 18.1")
	require.NoError(t, os.WriteFile(path, []byte("no report"), 0o600))
	_, err = first.Continue(path)
	require.ErrorContains(t, err, "no report")
}

func TestResultsOfAMeasureThatIsMeasuredAgainGoWithItsData(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	of := func(name, version string, date time.Time, measures ...string) *Result {
		return &Result{Name: name, Origin: Origin{Measures: measures, Date: date, Version: version}}
	}
	r := Report{Results: []*Result{
		of("ingest of 1,000", "v1", at.Add(-time.Hour), "1", "3"), of("ingest of 2,000", "v2", at, "1", "3"), of("sink", "v1", at.Add(-time.Hour), "2"), of("index", "v2", at, "10"),
	}}
	require.Equal(t, []string{"1", "2", "3"}, r.OfOthers("v2"))
	r.complete([]string{"1", "3"}, []string{"ingest of 2,000"})
	require.Equal(t, []string{"2"}, r.OfOthers("v2"))
	require.Equal(t, []string{"1", "3", "10"}, r.OfOthers("v1"))
	require.Len(t, r.Results, 3)
	require.Contains(t, r.origin(), "not all measures are of one version: 2 of v1; 1, 3, 10 of v2")
	r.complete([]string{"2"}, nil)
	require.Len(t, r.origin(), 3)
}

func TestARunThatWasInterruptedGoesOnWithWhatItHadNot(t *testing.T) {
	var order []string
	run := &Run{Report: &Report{Done: []string{"1", "3"}}, Rounds: 1, Log: t.Output()}
	measures := Origin{Measures: []string{"1", "3"}}
	do := func(names ...string) {
		for _, name := range names {
			require.NoError(t, run.Do(t.Context(), Experiment{Name: name, Quantities: []Quantity{{Name: "speed"}}, Ways: []Way{fixed(&order, name, 1, 1)}}))
		}
	}
	missing := func() []string { return run.Report.Missing(measures.Measures) }
	run.Begin(measures)
	run.Interrupt()
	require.Empty(t, missing(), "nothing was measured again")
	run.Begin(measures)
	do("a")
	run.Interrupt()
	require.Equal(t, measures.Measures, missing())
	run.Begin(measures)
	do("a", "b")
	run.End()
	require.Empty(t, missing())
	require.Len(t, order, 2)

	run.Begin(measures)
	do("b")
	run.Interrupt()
	require.Len(t, order, 3, "what is complete is measured again")
	require.Len(t, run.Report.Results, 1, "the other is of another time")
	run.Begin(measures)
	do("b", "a")
	run.End()
	require.Len(t, order, 4)
	require.Len(t, run.Report.Results, 2)
}

func TestAnExperimentThatWasInterruptedGoesOnWithItsWholeRounds(t *testing.T) {
	var order []string
	stop := errors.New("stopped")
	path := filepath.Join(t.TempDir(), "report.json")
	origin := Origin{Measures: []string{"1"}, Version: "v1"}
	failing := func(after int) Way {
		way := fixed(&order, "b", 0, 1)
		return Way{Name: "b", Run: func(ctx context.Context, round int) (Values, error) {
			if len(order) >= after {
				return nil, stop
			}
			return way.Run(ctx, round)
		}}
	}
	run := func(origin Origin, after int) (*Run, error) {
		order = nil
		report, err := (&Report{Seed: 1}).Continue(path)
		require.NoError(t, err)
		run := &Run{Report: report, Rounds: 4, Log: t.Output()}
		run.Begin(origin)
		once := fixed(&order, "c", 0, 3)
		once.Once = true
		err = run.Do(t.Context(), Experiment{
			Name: "slow", Quantities: []Quantity{{Name: "speed"}}, Ways: []Way{fixed(&order, "a", 0, 2), failing(after), once},
			Compare: []Comparison{{Quantity: "speed", Of: "a", To: "b", AtLeast: 1}},
		})
		if err == nil {
			run.End()
		} else {
			run.Interrupt()
		}
		require.NoError(t, report.Keep(path))
		return run, err
	}
	r, err := run(origin, 8)
	require.ErrorIs(t, err, stop)
	require.Equal(t, "abac"+"aba"+"baa"+"aa", strings.Join(order, ""), "of four rounds three are whole")
	require.Empty(t, r.Report.Results)
	require.Equal(t, []string{"1"}, r.Report.Missing(origin.Measures))
	_, err = run(Origin{Measures: origin.Measures, Version: "v2"}, 1)
	require.ErrorIs(t, err, stop)
	require.Equal(t, "a", strings.Join(order, ""), "rounds of another version do not count")
	r, err = run(origin, 100)
	require.NoError(t, err)
	require.Equal(t, "aab", strings.Join(order, ""), "that which was not whole, in the same order")
	require.Nil(t, r.Report.Begun)
	result := r.Report.Results[0]
	require.Len(t, result.Ways[0].Values["speed"], 4)
	require.Len(t, result.Ways[1].Values["speed"], 4)
	require.Len(t, result.Ways[2].Values["speed"], 1)
	require.Len(t, result.Again.Values["speed"], 4)
	for range 2 {
		r, err = run(origin, 8)
		require.ErrorIs(t, err, stop)
		require.Equal(t, "abac"+"aba"+"baa"+"aa", strings.Join(order, ""), "what was complete is measured again from its beginning")
		require.Nil(t, r.Report.Begun)
	}
	require.Equal(t, result.Ways, r.Report.Results[0].Ways)
}

func TestNumbersHaveThreeDigitsThatCount(t *testing.T) {
	for want, v := range map[string]float64{"0": 0, "1,234,568": 1234567.8, "12.3": 12.345, "0.00123": 0.001234, "-1.5": -1.5, "100": 99.99, "2": 2} {
		require.Equal(t, want, Number(v))
	}
}

// needProc skips the test if the system does not publish the resource use of processes.
func needProc(t *testing.T) {
	t.Helper()
	if _, err := os.Stat("/proc/self/stat"); err != nil {
		t.Skip("this system has no /proc")
	}
}

func TestTheCPUTimeOfAServerIsThatOfItsProcesses(t *testing.T) {
	needProc(t)
	before, err := CPUOfTree(os.Getpid())
	require.NoError(t, err)
	own, err := CPUOfSelf()
	require.NoError(t, err)
	var now syscall.Rusage
	require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &now))
	for begun := now; now.Utime.Nano()-begun.Utime.Nano() < 3*int64(tick); {
		require.NoError(t, syscall.Getrusage(syscall.RUSAGE_SELF, &now))
	}
	after, err := CPUOfTree(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, after, before)
	self, err := CPUOfSelf()
	require.NoError(t, err)
	require.InDelta(t, after-before, self-own, float64(5*tick))

	cmd, err := Command(t.Context(), "burn", nil)
	require.NoError(t, err)
	cmd.Stdin = nil
	stdin, err := cmd.StdinPipe()
	require.NoError(t, err)
	stdout, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	_, err = bufio.NewReader(stdout).ReadString('\n')
	require.NoError(t, err)
	living, err := CPUOfTree(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, living-after, burnt-2*tick, "a child that lives counts")
	require.NoError(t, stdin.Close())
	require.NoError(t, cmd.Wait())
	ended, err := CPUOfTree(os.Getpid())
	require.NoError(t, err)
	require.GreaterOrEqual(t, ended, living, "and so does one that has ended")
}

func TestAServerThatWaitsForItsDiskNeedsOne(t *testing.T) {
	const memory = "/dev/shm"
	if mounts, err := os.ReadFile("/proc/mounts"); err != nil || !bytes.Contains(mounts, []byte(" "+memory+" tmpfs ")) {
		t.Skip("this system has no " + memory + " in memory")
	}
	run := Run{Dir: memory}
	require.ErrorContains(t, run.OnServer(t.Context(), ServerOptions{Durable: true}, nil), "name a folder on one")
	require.False(t, inMemory("/proc/self"), "what is not known to be")
}

func TestMemoryIsThatOfAProcessThatRuns(t *testing.T) {
	needProc(t)
	m, err := MemoryOf(os.Getpid())
	require.NoError(t, err)
	require.Greater(t, m.Now, int64(1<<20))
	require.GreaterOrEqual(t, m.Peak, m.Now)
	_, err = MemoryOf(1 << 30)
	require.ErrorIs(t, err, os.ErrNotExist)
}

func TestAChildIsThisProgramWithATask(t *testing.T) {
	var doubled int
	require.NoError(t, Output(t.Context(), "double", 21, &doubled))
	require.Equal(t, 42, doubled)
	require.Error(t, Output(t.Context(), "treble", 21, &doubled))
	require.ErrorIs(t, children.Run(t.Context()), ErrNotChild)
}
