package terminal_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/kuberewind/kuberewind/internal/terminal"
)

func TestTablesFoldBetweenTheirColumns(t *testing.T) {
	const pods = "" +
		"NAME    READY   NOMINATED NODE   READINESS GATES\n" +
		"web-1   1/1     <none>           <none>\n" +
		"api     0/1     node-1           a/b\n"
	require.Equal(t, ""+
		"NAME    READY\n    NOMINATED NODE\n    READINESS GATES\n"+
		"web-1   1/1\n    <none>\n    <none>\n"+
		"api     0/1\n    node-1\n    a/b\n", terminal.FoldTables(pods, 28))
	require.Equal(t, ""+
		"NAME    READY   NOMINATED NODE\n    READINESS GATES\n"+
		"web-1   1/1     <none>\n    <none>\n"+
		"api     0/1     node-1\n    a/b\n", terminal.FoldTables(pods, 40))
	require.Equal(t, pods, terminal.FoldTables(pods, 49), "it fits")
	require.Equal(t, pods, terminal.FoldTables(pods, 0), "no terminal")

	const short = "NAME    TYPE\nweb     ClusterIP\n"
	require.Equal(t, short+"\n"+terminal.FoldTables(pods, 40), terminal.FoldTables(short+"\n"+pods, 40), "each table folds separately")
}

func TestACellWiderThanTheTerminalIsIndented(t *testing.T) {
	const holes = "" +
		"RESOURCE   COMPLETE   WHY\n" +
		"pods       no         expired: too old; a list then held nothing new\n" +
		"secrets    yes\n"
	require.Equal(t, ""+
		"RESOURCE   COMPLETE\n    WHY\n"+
		"pods       no\n    expired: too old; a\n        list then held\n        nothing new\n"+
		"secrets    yes\n", terminal.FoldTables(holes, 24))
}

func TestNoLineIsWiderThanTheTerminal(t *testing.T) {
	scene(t)
	for _, call := range []string{
		"get all -n shop -o wide --at seq:700", "get pods -A --at seq:700 -o custom-columns=N:.metadata.name,U:.metadata.uid,L:.metadata.labels,I:.spec.containers[*].image",
		"blame deployment/web -n shop", "story deployment/web -n shop", "log -n shop --since seq:1 -v", "diff -A --from seq:300 -v", "coverage", "coverage -o wide --until now",
		"coverage --incomplete --until now",
	} {
		_, seen := atTerminal(t, append(strings.Fields(call), "--no-pager")...)
		require.NotEmpty(t, seen, call)
		for line := range strings.FieldsFuncSeq(seen, func(r rune) bool { return r == '\n' || r == '\r' }) { // \r: progress, on a slow machine
			require.LessOrEqual(t, terminal.Columns(line), 80, "%s: %s", call, line)
		}
	}
}

func TestAFoldedTableFitsAndLosesNothing(t *testing.T) {
	cell := rapid.StringMatching(`[a-z<>/é]{0,12}( [a-z]{1,5})?`)
	rapid.Check(t, func(t *rapid.T) {
		width, columns := rapid.IntRange(20, 60).Draw(t, "width"), rapid.IntRange(1, 8).Draw(t, "columns")
		rows := rapid.SliceOfN(rapid.SliceOfN(cell, columns, columns), 1, 5).Draw(t, "rows")
		var b strings.Builder
		for _, row := range rows {
			for _, text := range row {
				b.WriteString(text + strings.Repeat(" ", 22-len([]rune(text))))
			}
			b.WriteByte('\n')
		}
		folded := terminal.FoldTables(b.String(), width)
		for line := range strings.SplitSeq(folded, "\n") {
			require.LessOrEqual(t, terminal.Columns(strings.TrimRight(line, " ")), width, "%q", folded)
		}
		bare := strings.NewReplacer(" ", "", "\n", "")
		require.Equal(t, bare.Replace(b.String()), bare.Replace(folded))
	})
}
