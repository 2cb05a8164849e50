package config

import (
	"errors"
	"net/url"
	"os"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5/pgconn"
	"github.com/spf13/viper"
)

const masked = "xxxxx"

// The places of passwords. A string that cannot be parsed is masked too: it is shown when it is refused.
var (
	urlPassword     = regexp.MustCompile(`(://[^:/?#]*:).*@`)
	keywordPassword = regexp.MustCompile(`(?i)(\w*password\w*\s*=\s*)('(?:[^'\\]|\\.)*'|(?:\\.|\S)+)`)
	keywords        = regexp.MustCompile(`^\s*(\w+\s*=\s*('(?:[^'\\]|\\.)*'|(?:\\.|[^'\s])(?:\\.|\S)*)?(\s+|$))+$`)
)

// MaskURL hides the passwords of a PostgreSQL URL or keyword string, where pgx finds them. A string that is neither may hold a
// password anywhere: it is hidden whole.
func MaskURL(database string) string {
	switch {
	case database == "" || database == Embedded:
		return database
	case strings.HasPrefix(database, "postgres://"), strings.HasPrefix(database, "postgresql://"):
		return maskQuery(urlPassword.ReplaceAllString(database, "${1}"+masked+"@"))
	case keywords.MatchString(database):
		return urlPassword.ReplaceAllString(keywordPassword.ReplaceAllString(database, "${1}"+masked), "${1}"+masked+"@")
	}
	return masked
}

// maskQuery hides the values of the keys that are passwords when decoded. It also hides those of keys that cannot be decoded.
func maskQuery(database string) string {
	before, query, found := strings.Cut(database, "?")
	if !found {
		return database
	}
	pairs := strings.Split(query, "&")
	for i, pair := range pairs {
		raw, _, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(raw)
		if err != nil || strings.Contains(strings.ToLower(key), "password") {
			pairs[i] = raw + "=" + masked
		}
	}
	return before + "?" + strings.Join(pairs, "&")
}

// unparsed takes the connection string out of pgx's error about it: it may hold a password where pgx does not see one.
func unparsed(err error) error {
	var refused *pgconn.ParseConfigError
	if !errors.As(err, &refused) {
		return err
	}
	text := "it is neither a URL (postgres://user@host/database) nor keywords (host=… user=… dbname=…) that can be read"
	if said := refused.Error(); !strings.Contains(said, "`: failed to parse as ") {
		text = said[strings.LastIndex(said, "`: ")+len("`: "):]
	}
	return &plainError{err, strings.ReplaceAll(err.Error(), refused.Error(), text)}
}

// ExposedAdvice says what to do if a file is Exposed.
const ExposedAdvice = "everyone can read the password in the configuration file: chmod o-rwx it, or keep the password in the file that PGPASSFILE names"

// Exposed is true if everyone can read a configuration file, and it holds a password.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o007 == 0 {
		return false
	}
	file := viper.New()
	if err := ReadFile(file, path); err != nil {
		return false // The reader of the file says so.
	}
	database := file.GetString("database")
	shown := MaskURL(database)
	return shown != database && shown != masked // No program can use what is hidden whole.
}
