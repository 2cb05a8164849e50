package spooling

import (
	"encoding/json"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kuberewind/kuberewind/internal/pgtest"
	"github.com/kuberewind/kuberewind/sink/postgres"
)

func TestMain(m *testing.M) { pgtest.Main(m) }

// A spoolOf is a spool with a header. It began with one entry, and its oldest entry is another one.
type spoolOf struct {
	header       []byte
	begun, first uint64
}

func (s spoolOf) Header() []byte { return s.header }
func (s spoolOf) Begun() uint64  { return s.begun }
func (s spoolOf) First() uint64  { return s.first }

func TestTheHeadDecidesFromWhichEntryAStartGoesOn(t *testing.T) {
	was := Owner{Cluster: "c", Key: []byte("key"), ID: []byte("mine"), Head: []byte("before"), First: 4}
	now := Owner{Cluster: "c", Key: []byte("key"), ID: []byte("new"), Head: []byte("now")}
	mine := func(next uint64) postgres.Offset { return postgres.Offset{Spool: []byte("mine"), Next: next} }
	other := postgres.Offset{Spool: []byte("other"), Next: 9}
	for name, test := range map[string]struct {
		owner        Owner
		begun, first uint64
		head         string
		noted        postgres.Offset
		want         uint64
		err          error
	}{
		"a commit noted it":                              {now, 4, 4, "after", mine(9), 9, nil},
		"it began when all earlier was recorded":         {now, 9, 9, "after", mine(9), 9, nil},
		"nothing was committed":                          {now, 4, 4, "before", postgres.Offset{}, 4, nil},
		"nothing was committed after another spool":      {now, 4, 4, "before", other, 4, nil},
		"the database has lost commits":                  {now, 9, 9, "after", mine(7), 0, ErrOvertaken},
		"the database has lost all commits of the spool": {now, 9, 9, "before", other, 0, ErrOvertaken},
		"its beginning is missing":                       {now, 4, 8, "after", mine(6), 0, ErrUnreadable},
		"its beginning is missing, and was not recorded": {now, 4, 8, "before", other, 0, ErrUnreadable},
		"its beginning is on record, and gone":           {now, 4, 8, "after", mine(8), 8, nil},
		"another spool was used since":                   {now, 4, 4, "after", other, 0, ErrOvertaken},
		"a recorder without a spool wrote since":         {now, 4, 4, "after", postgres.Offset{}, 0, ErrOvertaken},
		"another cluster":                                {Owner{Cluster: "d", Key: []byte("key")}, 4, 4, "before", postgres.Offset{}, 0, ErrForeign},
		"another key":                                    {Owner{Cluster: "c", Key: []byte("yek")}, 4, 4, "before", postgres.Offset{}, 0, ErrForeign},
	} {
		header, err := json.Marshal(was)
		require.NoError(t, err)
		got, err := FirstUnrecorded(spoolOf{header, test.begun, test.first}, test.owner, []byte(test.head), test.noted)
		require.ErrorIs(t, err, test.err, name)
		require.Equal(t, test.want, got, name)
	}
	for _, header := range []string{"{", `{"cluster":"c","key":"a2V5"}`} {
		_, err := FirstUnrecorded(spoolOf{header: []byte(header)}, now, nil, postgres.Offset{})
		require.ErrorIs(t, err, ErrForeign, header)
	}
}
