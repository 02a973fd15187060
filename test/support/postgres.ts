// A Postgres of the test's own, where the machine has one installed: temporary data, a unix socket only.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { accessSync, chownSync, constants, globSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { delimiter, join } from 'node:path'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'

export type Postgres = {
  /** A pool on a new, empty database. The caller ends it. */
  newDatabase(types: pg.CustomTypesConfig): Promise<pg.Pool>
  stop(): Promise<void>
}

type Account = { uid?: number; gid?: number }

/** Starts one, or says in a sentence why there is none. */
export async function startPostgres(): Promise<Postgres | { missing: string }> {
  const bin = findBinaries()
  if (!bin) return { missing: 'Postgres is not installed here' }
  const account = accountToRunAs()
  if (!account) return { missing: 'Postgres does not run as root, and there is no user postgres' }
  const folder = mkdtempSync(join(tmpdir(), 'bw-pg-'))
  if (account.uid !== undefined) chownSync(folder, account.uid, account.gid ?? account.uid)
  const data = join(folder, 'data')
  const options = { ...account, cwd: folder, stdio: 'ignore' as const }
  execFileSync(join(bin, 'initdb'), ['-D', data, '-A', 'trust', '-U', 'boxwood', '--no-sync'], options)
  const settings = [
    'listen_addresses=',
    `unix_socket_directories=${folder}`,
    'fsync=off',
    'max_connections=50',
  ]
  const flags = settings.flatMap((setting) => ['-c', setting])
  // The shell ends the server when its input closes: also when this process is killed.
  const script = '"$0" "$@" & server=$!; read _; kill -INT $server; wait $server'
  const server = spawn('sh', ['-c', script, join(bin, 'postgres'), '-D', data, ...flags], {
    ...options,
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  const exited = once(server, 'exit')

  const connect = (database: string, types?: pg.CustomTypesConfig) => {
    const pool = new pg.Pool({ host: folder, user: 'boxwood', database, ...(types && { types }) })
    // An idle connection that the stopping server ends first is no failure of a test.
    pool.on('error', () => undefined)
    return pool
  }

  async function stop(): Promise<void> {
    server.stdin?.end()
    await exited
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 })
  }

  const admin = connect('postgres')
  let count = 0
  async function newDatabase(types: pg.CustomTypesConfig): Promise<pg.Pool> {
    count += 1
    await admin.query(`create database test${count}`)
    return connect(`test${count}`, types)
  }

  await untilReady(admin, () => server.exitCode !== null)
  return {
    newDatabase,
    async stop() {
      await admin.end()
      await stop()
    },
  }
}

async function untilReady(pool: pg.Pool, hasExited: () => boolean): Promise<void> {
  const deadline = Date.now() + 30_000
  for (;;) {
    try {
      return void (await pool.query('select 1'))
    } catch (error) {
      if (hasExited() || Date.now() > deadline) throw error
      await sleep(50)
    }
  }
}

function findBinaries(): string | undefined {
  const folders = [
    ...globSync('/usr/lib/postgresql/*/bin').sort().reverse(),
    ...(process.env.PATH ?? '').split(delimiter),
  ]
  return folders.find((folder) => ['initdb', 'postgres'].every((name) => isExecutable(join(folder, name))))
}

function isExecutable(path: string): boolean {
  try {
    accessSync(path, constants.X_OK)
    return true
  } catch {
    return false
  }
}

/** Ourselves, unless that is root. */
function accountToRunAs(): Account | undefined {
  if (process.getuid?.() !== 0) return {}
  try {
    const number = (flag: string) =>
      Number(execFileSync('id', [flag, 'postgres'], { stdio: ['ignore', 'pipe', 'ignore'] }))
    return { uid: number('-u'), gid: number('-g') }
  } catch {
    return undefined
  }
}
