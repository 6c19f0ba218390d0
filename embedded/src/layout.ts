// Job: names every file this package keeps in a directory, and the user they belong to.
// Called by: all modules that touch the directory.
import { join } from 'node:path'

/** A user of the operating system. */
export interface Owner {
  uid: number
  gid: number
}

/** Where things lie in the directory of one embedded server, and whose they are. */
export interface Layout {
  dir: string
  /** Whom the server runs as and whose the files are; undefined for the user that we are. */
  owner: Owner | undefined
  /** PGDATA. */
  data: string
  /** Password of the superuser, mode 0600. */
  password: string
  /** Port of the last start, tried first by the next one so that URLs stay valid. */
  port: string
  log: string
  /** Folder with one file for each user of the server. */
  users: string
  /** Folder of the lock under which the server is started, joined and stopped. */
  lock: string
  /** Which process is the watchdog; touched by it at every look. */
  watch: string
}

export function layoutOf(dir: string, owner: Owner | undefined): Layout {
  return {
    dir,
    owner,
    data: join(dir, 'pgdata'),
    password: join(dir, 'password'),
    port: join(dir, 'port'),
    log: join(dir, 'server.log'),
    users: join(dir, 'users'),
    lock: join(dir, 'lock'),
    watch: join(dir, 'watch.json'),
  }
}

const OURS =
  /^(pgdata|password|port|server\.log(\.1)?|users|lock|watch\.json|(pgdata-|password\.|port\.|watch\.json\.)[0-9a-f]+\.new)$/

/** True for a name that this package, or a file system, puts into the directory: it does not make it "not empty". */
export function isOurName(name: string): boolean {
  return OURS.test(name) || name.startsWith('.') || name === 'lost+found'
}
