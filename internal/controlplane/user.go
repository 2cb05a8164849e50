package controlplane

import (
	"crypto/rand"
	"encoding/hex"
	"fmt"
	"os"
	"regexp"
	"strings"
)

// AdminName is the user that every control plane has: a member of system:masters, who may do everything.
const AdminName = "admin"

// User is a user who may show a token to the API servers. RBAC says what they may do.
type User struct {
	Name   string
	Groups []string
	// Token is made up if it is empty.
	Token string
}

// plainName keeps names, groups and tokens from breaking the lines of the token file, which are CSV.
var plainName = regexp.MustCompile(`^[A-Za-z0-9:._@-]+$`)

// newUsers returns the administrator and the others by name, each with a token.
func newUsers(others []User) (map[string]User, error) {
	users := map[string]User{}
	for _, user := range append([]User{{Name: AdminName, Groups: []string{"system:masters"}}}, others...) {
		if user.Token == "" {
			user.Token = randomToken()
		}
		for _, text := range append([]string{user.Name, user.Token}, user.Groups...) {
			if !plainName.MatchString(text) {
				return nil, fmt.Errorf("user %q: %q must be of letters, digits and :._@- only", user.Name, text)
			}
		}
		if _, taken := users[user.Name]; taken {
			return nil, fmt.Errorf("user %q is there twice", user.Name)
		}
		users[user.Name] = user
	}
	return users, nil
}

func randomToken() string {
	var bytes [16]byte
	rand.Read(bytes[:]) // never fails: crypto/rand ends the program rather than give less
	return hex.EncodeToString(bytes[:])
}

// writeTokenFile writes what kube-apiserver takes as --token-auth-file; it reads the file when it starts.
func writeTokenFile(path string, users map[string]User) error {
	var lines strings.Builder
	for _, user := range users {
		fmt.Fprintf(&lines, "%s,%s,%s,%q\n", user.Token, user.Name, user.Name, strings.Join(user.Groups, ","))
	}
	return os.WriteFile(path, []byte(lines.String()), 0o600)
}
