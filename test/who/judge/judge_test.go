package judge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/test/who/judge"
)

// A request is one of the log. The answer is version rv of the object u.
type request struct {
	verb, uri, agent, sent string
	rv, second             int // received at that second, and answered half a second later
	entries                []string
	level                  string
}

func (r request) String() string {
	if r.level == "" {
		r.level = "RequestResponse"
	}
	at := time.Date(2026, 1, 2, 0, 0, r.second, 0, time.UTC)
	_, subresource, _ := strings.Cut(r.uri, "/x/")
	subresource, _, _ = strings.Cut(subresource, "?")
	return fmt.Sprintf(`{"level":%q,"stage":"ResponseComplete","verb":%q,"requestURI":%q,"userAgent":%q,"user":{"username":"alice"},`+
		`"objectRef":{"resource":"things","subresource":%q,"resourceVersion":%q},"responseStatus":{"code":200},"requestReceivedTimestamp":%q,"stageTimestamp":%q,`+
		`"responseObject":{"metadata":{"uid":"u","resourceVersion":"%d","managedFields":[%s]}}}`+"\n",
		r.level, r.verb, r.uri, r.agent, subresource, r.sent, at.Format(time.RFC3339), at.Add(500*time.Millisecond).Format(time.RFC3339Nano), r.rv, strings.Join(r.entries, ","))
}

func entry(manager string, second int, fields ...string) string {
	var set []string
	for _, f := range fields {
		set = append(set, fmt.Sprintf(`"f:%s":{}`, f))
	}
	return fmt.Sprintf(`{"manager":%q,"operation":"Update","apiVersion":"v1","time":"2026-01-02T00:00:%02dZ","fieldsV1":{"f:spec":{%s}}}`, manager, second, strings.Join(set, ","))
}

func judged(t *testing.T, deltas []judge.Delta, requests ...request) judge.Verdict {
	t.Helper()
	var text strings.Builder
	for _, r := range requests {
		text.WriteString(r.String())
	}
	log, err := judge.ReadAudit(strings.NewReader(text.String()))
	require.NoError(t, err)
	return judge.Judge(log, deltas, []string{"alice"})
}

func delta(rv uint64, manager string) judge.Delta {
	d := judge.Delta{Version: judge.Version{UID: "u", RV: rv}, Resource: judge.Resource{Name: "things"}, Type: "Updated", Manager: manager, Evidence: "entry"}
	if manager == "" {
		d.Evidence = "none"
	}
	return d
}

func TestTheTruthIsTheFieldManagerOrElseTheAgentUpToItsFirstSlash(t *testing.T) {
	named := request{verb: "patch", uri: "/x?fieldManager=set", agent: "kubectl/v1/x", rv: 5}
	agent := request{verb: "update", uri: "/x", agent: "kubectl/v1/x", rv: 6}
	deltas := []judge.Delta{delta(5, "set"), delta(6, "kubectl")}
	require.Empty(t, judged(t, deltas, named, agent).Wrong)
	deltas = []judge.Delta{delta(5, "kubectl"), delta(6, "kubectl/v1")}
	require.Len(t, judged(t, deltas, named, agent).Wrong, 2)
}

func TestADeltaThatJoinsNoRequestOrSeveralIsWrongIfItIsNamed(t *testing.T) {
	both := []request{{verb: "patch", uri: "/x", agent: "a", rv: 5}, {verb: "patch", uri: "/x", agent: "b", rv: 5}}
	v := judged(t, []judge.Delta{delta(5, "a"), delta(7, "a"), delta(8, "")}, both...)
	require.Len(t, v.Wrong, 2)
	require.Contains(t, v.Wrong[0].String(), "several requests join")
	require.Contains(t, v.Wrong[1].String(), "no request joins")
	require.ErrorContains(t, v.Err(), "2 deltas name a wrong manager")
}

func TestARequestThatChangedNothingIsNoWriter(t *testing.T) {
	wrote := request{verb: "patch", uri: "/x", agent: "a", rv: 5, second: 1}
	for name, other := range map[string]request{
		"it named the version":           {verb: "update", uri: "/x", agent: "b", rv: 5, sent: "5", second: 1},
		"it came when the other was out": {verb: "patch", uri: "/x", agent: "b", rv: 5, second: 2},
	} {
		require.Empty(t, judged(t, []judge.Delta{delta(5, "a")}, wrote, other).Wrong, name)
		require.Len(t, judged(t, []judge.Delta{delta(5, "b")}, wrote, other).Wrong, 1, name)
	}
}

func TestARequestThatNamedAnOlderVersionIsTheWriter(t *testing.T) {
	v := judged(t, []judge.Delta{delta(5, "a"), delta(6, "a")},
		request{verb: "patch", uri: "/x", agent: "b", rv: 5}, request{verb: "update", uri: "/x", agent: "a", rv: 5, sent: "4"},
		request{verb: "patch", uri: "/x", agent: "b", rv: 6}, request{verb: "update", uri: "/x", agent: "a", rv: 6})
	require.Len(t, v.Wrong, 1)
	require.Contains(t, v.Wrong[0].String(), "resource version 6")
}

func TestADryRunIsNoWriter(t *testing.T) {
	v := judged(t, []judge.Delta{delta(5, "a")}, request{verb: "patch", uri: "/x?dryRun=All", agent: "a", rv: 5})
	require.Len(t, v.Wrong, 1)
}

func TestAnUpdateTookAFieldIfItsEntryIsNewLaterOrLarger(t *testing.T) {
	before := request{verb: "create", uri: "/x", agent: "a", rv: 5, second: 1, entries: []string{entry("a", 1, "p", "q"), entry("b", 1, "r")}}
	for name, c := range map[string]struct {
		agent   string
		entries []string
		took    int
	}{
		"new":                   {"c", []string{entry("a", 1, "p", "q"), entry("b", 1, "r"), entry("c", 1, "s")}, 1},
		"later":                 {"a", []string{entry("a", 2, "p", "q"), entry("b", 1, "r")}, 1},
		"larger":                {"b", []string{entry("a", 1, "p"), entry("b", 1, "q", "r")}, 1},
		"smaller":               {"a", []string{entry("a", 1, "p"), entry("b", 1, "r")}, 0},
		"the same":              {"a", []string{entry("a", 1, "p", "q"), entry("b", 1, "r")}, 0},
		"another took":          {"a", []string{entry("a", 1, "p"), entry("b", 1, "q", "r")}, 0},
		"gone":                  {"b", []string{entry("a", 1, "p", "q")}, 0},
		"another is later, too": {"a", []string{entry("a", 2, "p", "q"), entry("b", 2, "r")}, 1},
	} {
		v := judged(t, []judge.Delta{delta(6, "")}, before, request{verb: "patch", uri: "/x", agent: c.agent, rv: 6, second: 2, entries: c.entries})
		took, named := v.Floor()
		require.Equal(t, []int{c.took, 0}, []int{took, named}, name)
		require.Len(t, v.Unnamed, c.took, name)
	}
}

func TestAnAnswerToScaleIsNoVersionToCompareWith(t *testing.T) {
	first := request{verb: "create", uri: "/x", agent: "a", rv: 5, second: 1, entries: []string{entry("a", 1, "p")}}
	scale := request{verb: "patch", uri: "/x/scale", agent: "s", rv: 6, second: 2}
	last := request{verb: "patch", uri: "/x", agent: "a", rv: 7, second: 3, entries: []string{entry("a", 1, "p")}}
	v := judged(t, []judge.Delta{delta(6, "s"), delta(7, "")}, first, scale, last)
	took, _ := v.Floor()
	require.Zero(t, took)
	require.Empty(t, v.Wrong)
}

func TestBelow98PercentARecordFails(t *testing.T) {
	var requests []request
	var deltas []judge.Delta
	for i := range 101 {
		requests = append(requests, request{verb: "patch", uri: "/x", agent: "a", rv: 100 + i, second: i % 60, entries: []string{entry("a", 1, fmt.Sprint("p", i))}})
		deltas = append(deltas, delta(uint64(100+i), "a"))
	}
	require.NoError(t, judged(t, deltas, requests...).Err())
	deltas[50].Manager, deltas[51].Manager = "", ""
	require.NoError(t, judged(t, deltas, requests...).Err())
	deltas[52].Manager = ""
	require.ErrorContains(t, judged(t, deltas, requests...).Err(), "97 (97.0 %) of 100 updates")
}

func TestARecordThatProvesNothingFails(t *testing.T) {
	require.ErrorContains(t, judged(t, nil).Err(), "nothing was judged")
}

func TestHintsAreCountedRightAndWrong(t *testing.T) {
	right, wrong, unknown := delta(5, ""), delta(6, ""), delta(7, "")
	right.Hint, wrong.Hint, unknown.Hint = "a", "b", "a"
	v := judged(t, []judge.Delta{right, wrong, unknown},
		request{verb: "patch", uri: "/x", agent: "a", rv: 5}, request{verb: "patch", uri: "/x", agent: "a", rv: 6})
	require.Equal(t, []int{1, 2}, []int{v.HintsRight, v.HintsWrong})
	require.Empty(t, v.Wrong)
}

func TestDeltasOfWhichTheLogKeepsNoBodiesAreCountedAndNotJudged(t *testing.T) {
	v := judged(t, []judge.Delta{delta(5, "anybody")}, request{level: "Metadata", verb: "patch", uri: "/x", agent: "a", rv: 5})
	require.Empty(t, v.Wrong)
	var text strings.Builder
	require.NoError(t, v.Print(&text))
	require.Contains(t, text.String(), "1 deltas of things")
}

func TestTheTableCountsByWhoWroteAndByWhichRequest(t *testing.T) {
	binding := delta(7, "")
	binding.What = "binding"
	v := judged(t, []judge.Delta{delta(5, "a"), delta(6, "a"), binding},
		request{verb: "patch", uri: "/x/status", agent: "a", rv: 5}, request{verb: "update", uri: "/x", agent: "b", rv: 6})
	var text strings.Builder
	require.NoError(t, v.Print(&text))
	for _, line := range []string{`people +patch status +1 +1 +0 +0 +0 +0 +-`, `people +update +1 +1 +0 +0 +1 +0 +-`, `no request joins +binding +1 +0 +0 +1 +0 +0 +-`, `all +3 +2 +0 +1 +1 +0 +-`} {
		require.Regexp(t, line, text.String())
	}
}

func TestALineThatIsNoEventIsAnErrorAndAnUnfinishedLastLineIsNone(t *testing.T) {
	_, err := judge.ReadAudit(strings.NewReader("{\"stage\":\n"))
	require.ErrorContains(t, err, "read the audit log")
	_, err = judge.ReadAudit(strings.NewReader("{\"stage\":"))
	require.NoError(t, err)
}
