// Package embedded runs the PostgreSQL server that users get with `--database embedded`. One data directory has one server
// process. Any number of holders in any number of processes may use it at the same time.
//
// # What it guarantees
//
//   - The package never deletes data. It removes only the scratch directory of an initdb that was interrupted before its result was in
//     place.
//   - The server runs while a process holds it. The first holder starts it, the last one stops it (fast shutdown). A holder has a shared
//     flock. The kernel frees it even if SIGKILL kills the holder, so no process checks pids of holders.
//   - The server survives the process that started it. It has its own session, so neither Ctrl-C on the terminal nor the death of that
//     process ends it. If SIGKILL kills the last holder, the server keeps running. The next holder adopts it and stops it at its own end.
//   - The package checks whether the server is alive by a flock that the server's processes inherit, not by postmaster.pid. After a crash,
//     a reboot or the reuse of a pid, the pid file may be wrong; the package removes it. If a server was started by hand on the same
//     data, the package uses it and does not stop it.
//   - [Server.Replaced] returns the files of the server (its program and the PL/pgSQL library) that were replaced on disk, whichever
//     process started it. All sessions, including new ones, go on with the old files, because the server loads the library once at its
//     start. [Server.Renew] restarts the server, unless other programs have sessions.
//   - If root starts the server, it runs under another account. Only that account and root can enter the socket's directory. The server
//     still requires a password (scram-sha-256), which only the user who starts it can read.
//
// # What it rejects, and why
//
//   - A data directory of a major version for which no binaries are found. PostgreSQL cannot read it, and upgrading is the operator's
//     decision.
//   - A data directory that another user owns, or that the server's account cannot enter (as root, below a home of mode 0700). The error
//     names the directory and what to change.
//   - Network file systems without flock.
//   - A supervisor that restarts a dead server. Callers that want the server back call Ensure.
//
// # Where the binaries come from
//
// The binaries come from Options.BinDir, or the environment variable KUBEREWIND_POSTGRES_BIN. Else the package uses the newest on the
// machine (PATH, pg_config, the places of Debian, RPM, Alpine, Homebrew, MacPorts, Postgres.app). Else the embedded-postgres library
// fetches them once into DataDir/binaries. Existing data need binaries of their own major version. 15 is the oldest supported version.
//
// # Layout of DataDir
//
//	data/          PGDATA; owned by the server's account
//	server.conf    the settings of this package, rewritten at each start; ALTER SYSTEM and lines that follow the include in
//	               data/postgresql.conf take precedence
//	pgpass         the superuser's password, mode 0600
//	log/           startup.log, and a week of server-*.log
//	run/           the socket; if that path is too long or has a comma, the socket is in a directory below /tmp
//	binaries/      fetched binaries
//	locks/         the locks of Server.Lock
//	server.files   the files from which the running server was started: device, inode, size and time of each
//	lifecycle.lock held exclusively while a process starts or stops the server
//	holders.lock   held shared by every holder
//	server.lock    held by the processes of the server itself
//
// # Goroutines
//
// No goroutine outlives a call. Fetching binaries runs a proxy on loopback, so that the download ends with its context.
//
// # Knobs
//
// The knobs are the fields of Options. A service manager must send its SIGTERM only to the recorder (systemd: KillMode=mixed). If the
// server also gets it, it refuses the connections that draining needs.
package embedded
