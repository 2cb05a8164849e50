package embedded

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"syscall"
)

// serverAccounts are the accounts for the server if root starts it, in order of preference. PostgreSQL refuses to run as root.
var serverAccounts = []string{"kuberewind", "postgres", "nobody"}

// account is the user under whom the server runs.
type account struct {
	name     string
	uid, gid int
	foreign  bool // not the user of this process, who is root then
}

// chooseAccount returns the account for the server. If there are data, that is their owner. So an account that is added to the machine
// later changes nothing.
func chooseAccount(euid int, dataDir string) (account, error) {
	uid, gid, err := owner(dataDir)
	exists := err == nil
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return account{}, explainPath("look at the data directory", dataDir, err)
	}
	switch {
	case euid != 0 && exists && uid != euid:
		return account{}, fmt.Errorf("the data in %s belong to %s, and you are %s; run as that user (or as root), "+
			"or choose another data directory", dataDir, accountName(uid), accountName(euid))
	case euid != 0:
		return account{name: accountName(euid), uid: euid, gid: os.Getegid()}, nil
	case exists && uid == 0:
		return account{}, fmt.Errorf("the data in %s belong to root, but PostgreSQL refuses to run as root; "+
			"chown -R them to a system user such as postgres", dataDir)
	case exists:
		return account{name: accountName(uid), uid: uid, gid: gid, foreign: true}, nil
	}
	return lookupServerAccount(serverAccounts)
}

func lookupServerAccount(names []string) (account, error) {
	for _, name := range names {
		u, err := user.Lookup(name)
		if err != nil {
			continue
		}
		uid, uidErr := strconv.Atoi(u.Uid)
		gid, gidErr := strconv.Atoi(u.Gid)
		if uidErr == nil && gidErr == nil && uid != 0 {
			return account{name: name, uid: uid, gid: gid, foreign: true}, nil
		}
	}
	return account{}, fmt.Errorf("PostgreSQL refuses to run as root, and this machine has none of the users %v; "+
		"add one (useradd --system kuberewind), or run as an ordinary user", names)
}

func owner(path string) (uid, gid int, err error) {
	info, err := os.Lstat(path)
	if err != nil {
		return 0, 0, err
	}
	return statOwner(info)
}

func statOwner(info fs.FileInfo) (uid, gid int, err error) {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return 0, 0, fmt.Errorf("owner of %s: not known on this system", info.Name())
	}
	return int(stat.Uid), int(stat.Gid), nil
}

func accountName(uid int) string {
	if u, err := user.LookupId(strconv.Itoa(uid)); err == nil {
		return u.Username
	}
	return "uid " + strconv.Itoa(uid)
}

// attributes put a process of the server into a new session, so that the terminal does not send it Ctrl-C.
func (a account) attributes() *syscall.SysProcAttr {
	attr := &syscall.SysProcAttr{Setsid: true}
	if a.foreign {
		attr.Credential = &syscall.Credential{Uid: uint32(a.uid), Gid: uint32(a.gid)}
	}
	return attr
}

func (a account) own(path string) error {
	if !a.foreign {
		return nil
	}
	return os.Lchown(path, a.uid, a.gid)
}

// barrier returns the first directory on the way to path (included) that the account cannot enter, or "".
func (a account) barrier(path string) string {
	parent := filepath.Dir(path)
	if parent != path {
		if dir := a.barrier(parent); dir != "" {
			return dir
		}
	}
	info, err := os.Stat(path)
	if err != nil || !info.IsDir() {
		return ""
	}
	uid, gid, err := statOwner(info)
	if err != nil {
		return ""
	}
	bit := fs.FileMode(0o001)
	switch {
	case uid == a.uid:
		bit = 0o100
	case gid == a.gid:
		bit = 0o010
	}
	if info.Mode().Perm()&bit == 0 {
		return path
	}
	return ""
}
