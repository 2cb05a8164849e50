// Package embedded keeps the PostgreSQL server that users get with `--database embedded`: one data directory, one server
// process, and as many holders in as many processes as need it at the same time.
//
// # What it guarantees
//
//   - Data are never deleted. The one directory that this package removes is the scratch directory of an initdb that was
//     interrupted before its result was put in place.
//   - The server runs while anyone holds it. The first holder starts it, the last one stops it (fast shutdown). A holder
//     is a shared flock, so one that dies by SIGKILL lets go of it by itself, and its pid is never asked for.
//   - The server survives its starter: it has a session of its own, so neither Ctrl-C on the terminal nor the death of the
//     starter reaches it. When the last holder is killed by SIGKILL, nobody is left to stop the server: it goes on running,
//     the next holder adopts it, and stops it at its own end.
//   - Whether a server is alive is read from a flock that its processes inherit, never from postmaster.pid: a pid file left
//     by a crash or a reboot, or whose pid belongs to somebody else by now, is put aside. A server that somebody started by
//     hand on the same data is used, and left running.
//   - A server whose program or PL/pgSQL library was replaced on disk is recognised ([Server.Replaced]), whichever process
//     started it. Its sessions, new ones too, go on with the old files: the library is loaded once, when the server starts.
//     [Server.Renew] restarts it, unless others than the caller have sessions.
//   - As root the server runs under another account. Nobody but that account (and root) can enter the socket's directory,
//     and a password (scram-sha-256) that only the user who starts the server can read is asked for all the same.
//
// # What it rejects, and why
//
//   - A data directory of a major version for which no binaries are found: PostgreSQL cannot read it, and upgrading is the
//     operator's decision.
//   - A data directory that another user owns, or that the server's account cannot enter (as root, below a home of mode
//     0700): the error names the directory and what to change.
//   - Network file systems without flock.
//   - A supervisor that would restart a server that died: callers that want it back call Ensure.
//
// # Where the binaries come from
//
// Options.BinDir, or the environment variable KUBEREWIND_POSTGRES_BIN; else the newest on the machine (PATH, pg_config, the
// places of Debian, RPM, Alpine, Homebrew, MacPorts, Postgres.app); else they are fetched once by the embedded-postgres
// library into DataDir/binaries. Existing data pick the binaries of their own major version. 15 is the oldest version that
// is supported.
//
// # Layout of DataDir
//
//	data/          PGDATA; owned by the server's account
//	server.conf    the settings of this package, rewritten at each start; ALTER SYSTEM and lines that follow the include in
//	               data/postgresql.conf take precedence
//	pgpass         the superuser's password, mode 0600
//	log/           startup.log, and a week of server-*.log
//	run/           the socket; a directory below /tmp where that path would be too long for one
//	binaries/      fetched binaries
//	locks/         those of Server.Lock
//	server.files   what the running server was started from: device, inode, size and time of each file
//	lifecycle.lock held exclusively while a server is being started or stopped
//	holders.lock   held shared by every holder
//	server.lock    held by the processes of the server itself
//
// # Goroutines
//
// None outlive a call. Fetching binaries runs a proxy on loopback, so that the download ends with its context.
//
// # Knobs
//
// The fields of Options. A service manager has to send its SIGTERM to the recorder only (systemd: KillMode=mixed): sent to
// the server as well, it refuses the connections that draining needs.
package embedded
