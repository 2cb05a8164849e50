// Package embedded keeps the PostgreSQL server that users get with `--database embedded`. One data directory has one server
// process. Any number of holders in any number of processes may use it at the same time.
//
// # What it guarantees
//
//   - Data are never deleted. The package removes only the scratch directory of an initdb that was interrupted before its
//     result was in place.
//   - The server runs while anyone holds it. The first holder starts it, the last one stops it (fast shutdown). A holder is a
//     shared flock. The kernel frees it when the holder dies by SIGKILL; nobody asks for the pid.
//   - The server survives the process that started it. It has a session of its own, so neither Ctrl-C on the terminal nor
//     that process's death reaches it. If SIGKILL kills the last holder, the server goes on running. The next holder adopts
//     it, and stops it at its own end.
//   - A flock that the server's processes inherit tells whether it is alive, never postmaster.pid. A crash, a reboot, or a
//     reused pid may leave a false pid file; the package puts it aside. If a server was started by hand on the same data, the
//     package uses it and leaves it running.
//   - If a server's program or PL/pgSQL library was replaced on disk, [Server.Replaced] tells, whichever process started it.
//     Its sessions, new ones too, go on with the old files: the library is loaded once, when the server starts.
//     [Server.Renew] restarts it, unless others than the caller have sessions.
//   - As root the server runs under another account. Only that account and root can enter the socket's directory. The server
//     still asks for a password (scram-sha-256), which only the user who starts it can read.
//
// # What it rejects, and why
//
//   - A data directory of a major version for which no binaries are found: PostgreSQL cannot read it, and upgrading is the
//     operator's decision.
//   - A data directory that another user owns, or that the server's account cannot enter (as root, below a home of mode
//     0700). The error names the directory and what to change.
//   - Network file systems without flock.
//   - A supervisor that would restart a server that died: callers that want it back call Ensure.
//
// # Where the binaries come from
//
// The binaries come from Options.BinDir, or the environment variable KUBEREWIND_POSTGRES_BIN. Else the newest on the machine
// are used (PATH, pg_config, the places of Debian, RPM, Alpine, Homebrew, MacPorts, Postgres.app). Else the embedded-postgres
// library fetches them once into DataDir/binaries. Existing data pick the binaries of their own major version. 15 is the oldest
// version that is supported.
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
// The knobs are the fields of Options. A service manager has to send its SIGTERM to the recorder only (systemd:
// KillMode=mixed). A server that gets it too refuses the connections that draining needs.
package embedded
