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

// These expressions find passwords. They also match in strings that cannot be parsed, because an error shows such a string.
var (
	urlPassword     = regexp.MustCompile(`(://[^:/?#]*:).*@`)
	keywordPassword = regexp.MustCompile(`(?i)(\w*password\w*\s*=\s*)('(?:[^'\\]|\\.)*'|(?:\\.|\S)+)`)
	keywords        = regexp.MustCompile(`^\s*(\w+\s*=\s*('(?:[^'\\]|\\.)*'|(?:\\.|[^'\s])(?:\\.|\S)*)?(\s+|$))+$`)
)

// MaskURL masks the passwords of a PostgreSQL URL or keyword string, in the places where pgx finds them. Any other string may hold a
// password anywhere, so MaskURL masks it whole.
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

// maskQuery masks the value of each key that contains "password" after decoding. It also masks the values of keys that cannot be
// decoded.
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

// unparsed removes the connection string from pgx's parse error. The string may hold a password in a place that pgx does not mask.
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

// ExposedAdvice is the advice for a file that is Exposed.
const ExposedAdvice = "everyone can read the password in the configuration file: chmod o-rwx it, or keep the password in the file that PGPASSFILE names"

// Exposed reports whether everyone can read a configuration file that holds a password.
func Exposed(path string) bool {
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o007 == 0 {
		return false
	}
	file := viper.New()
	if err := ReadFile(file, path); err != nil {
		return false // Load returns this error.
	}
	database := file.GetString("database")
	shown := MaskURL(database)
	return shown != database && shown != masked // A string that is masked whole is no valid URL, so it holds no usable password.
}
