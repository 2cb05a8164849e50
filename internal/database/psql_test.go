package database

import (
	"testing"

	"github.com/stretchr/testify/require"
)

func TestPSQLGetsTheAddressOfTheRecordAndNoPassword(t *testing.T) {
	for database, want := range map[string]string{
		"postgres://u:hunter2@h:5432/d?sslmode=verify-full":                        "postgres://u@h:5432/d?sslmode=verify-full",
		"postgres://u:hun@ter2@h1:1,h2:2/d":                                        "postgres://u@h1:1,h2:2/d",
		"postgres://u@h/d?password=hunter2&pool_max_conns=4&options=-c%20role%3Dr": "postgres://u@h/d?options=-c%20role%3Dr",
		"postgresql://h/d?sslpassword=hunter2&default_query_exec_mode=exec":        "postgresql://h/d",
		"postgres://u:hunter2@/d?host=/run/postgresql":                             "postgres://u@/d?host=/run/postgresql",
		`host=h user=u password='hun ter2' dbname=d sslmode=require`:               `host=h user=u  dbname=d sslmode=require`,
		`password=hun\ ter2 host=h pool_max_conns=4`:                               ` host=h `,
	} {
		require.Equal(t, want, forLibpq(database))
	}
}
