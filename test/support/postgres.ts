// Starts a temporary Postgres server for tests, on a unix socket, where Postgres is installed.
import { execFileSync, spawn } from 'node:child_process'
import { createHash } from 'node:crypto'
import { once } from 'node:events'
import {
  appendFileSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readFileSync,
  realpathSync,
  renameSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import pg from 'pg'
import { PROJECT_DIR } from './project.ts'
import { findProgram, requires } from './requires.ts'
import { getDatabaseDir } from './temp-dir.ts'
import { waitUntil } from './wait-until.ts'

export type Postgres = {
  /** The URL of the server, without a database. */
  serverUrl: string
  /** The path of the program. */
  createdb: string
  /** Creates a database and returns its URL. @param templateUrl of a database to copy. Default: empty */
  newDatabase(templateUrl?: string): Promise<string>
  /** Kills the server with all its processes. */
  kill(): Promise<void>
  /** Starts a killed server. Resolves when it has recovered. */
  restart(): Promise<void>
  stop(): Promise<void>
}

type Account = { uid?: number; gid?: number }

/**
 * Starts a server. Returns a reason, as a sentence, when Postgres cannot run on this machine.
 * @param address at which it also listens, on port 5432, for the network of the address. Default: none
 */
export async function startPostgres({
  address = '',
}: {
  address?: string
} = {}): Promise<Postgres | { skipReason: string }> {
  const missing = requires('postgres', 'initdb', 'createdb')
  if (missing !== false) return { skipReason: missing }
  const binDir = dirname(realpathSync(findProgram('postgres') ?? ''))
  const account = findAccount()
  if (!account) return { skipReason: 'Postgres does not run as root, and the user postgres does not exist' }
  const tempDir = mkdtempSync(join(getDatabaseDir(), 'bw-pg-'))
  if (account.uid !== undefined) chownSync(tempDir, account.uid, account.gid ?? account.uid)
  const dataDir = join(tempDir, 'data')
  const options = { ...account, cwd: tempDir, stdio: 'ignore' as const }
  createDataDir(binDir, dataDir, options)
  if (address !== '') appendFileSync(join(dataDir, 'pg_hba.conf'), 'host all all samenet trust\n')
  const settings = [
    `listen_addresses=${address}`,
    `unix_socket_directories=${tempDir}`,
    'fsync=off',
    'max_connections=200',
  ]
  const flags = settings.flatMap((setting) => ['-c', setting])
  // The shell stops the server when its stdin closes, which also happens when this process is killed.
  const script = '"$0" "$@" & server=$!; read _; kill -INT $server; wait $server'
  const spawnServer = () => {
    const child = spawn('sh', ['-c', script, join(binDir, 'postgres'), '-D', dataDir, ...flags], {
      ...options,
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    return { child, exited: once(child, 'exit') }
  }
  let server = spawnServer()

  async function stopServer(): Promise<void> {
    server.child.stdin?.end()
    await server.exited
    rmSync(tempDir, { recursive: true, force: true, maxRetries: 5 })
  }

  const serverUrl = `postgres://boxwood@${encodeURIComponent(tempDir)}`
  const adminPool = new pg.Pool({ connectionString: `${serverUrl}/postgres` })
  // Ignore errors of idle connections that the server closes while stopping.
  adminPool.on('error', () => undefined)
  let databaseCount = 0
  async function newDatabase(templateUrl?: string): Promise<string> {
    databaseCount += 1
    const name = `test${databaseCount}`
    const template = templateUrl === undefined ? '' : ` template ${templateUrl.split('/').at(-1)}`
    await adminPool.query(`create database ${name}${template}`)
    return `${serverUrl}/${name}`
  }

  const waitForServer = () => waitUntilReady(adminPool, () => server.child.exitCode !== null)
  await waitForServer()
  return {
    serverUrl,
    createdb: join(binDir, 'createdb'),
    newDatabase,
    async kill() {
      const [main = ''] = readFileSync(join(dataDir, 'postmaster.pid'), 'utf8').split('\n')
      const children = readFileSync(`/proc/${main}/task/${main}/children`, 'utf8').trim().split(' ')
      // The next server cannot start while one of them uses the shared memory.
      for (const pid of [main, ...children]) killProcess(Number(pid))
      await waitUntil('the processes of Postgres have exited', () =>
        [main, ...children].every((pid) => !existsSync(`/proc/${pid}/exe`)),
      )
      server.child.stdin?.end()
      await server.exited
    },
    async restart() {
      server = spawnServer()
      await waitForServer()
    },
    async stop() {
      await adminPool.end()
      await stopServer()
    },
  }
}

function killProcess(pid: number): void {
  try {
    process.kill(pid, 'SIGKILL')
  } catch (error) {
    // It has exited.
    if ((error as NodeJS.ErrnoException).code !== 'ESRCH') throw error
  }
}

/** Copies a directory that an earlier test file has created, because initdb takes most of the time of a start. */
function createDataDir(binDir: string, dataDir: string, options: Account & { stdio: 'ignore' }): void {
  const version = execFileSync(join(binDir, 'postgres'), ['--version'])
  const key = createHash('sha256').update(`${version} ${options.uid}`).digest('hex').slice(0, 16)
  const cached = join(PROJECT_DIR, `node_modules/.cache/test-postgres/${key}`)
  if (existsSync(cached)) {
    copyDir(cached, dataDir)
    return
  }
  execFileSync(join(binDir, 'initdb'), ['-D', dataDir, '-A', 'trust', '-U', 'boxwood', '--no-sync'], options)
  // Test files run concurrently: the directory appears complete.
  const staging = `${cached}.${process.pid}`
  try {
    mkdirSync(dirname(cached), { recursive: true })
    copyDir(dataDir, staging)
    renameSync(staging, cached)
  } catch {
    // Another test file was faster, or this user may not write there.
    rmSync(staging, { recursive: true, force: true })
  }
}

/** Keeps the owners. */
function copyDir(from: string, to: string): void {
  execFileSync('cp', ['-a', from, to], { stdio: 'ignore' })
}

async function waitUntilReady(pool: pg.Pool, hasExited: () => boolean): Promise<void> {
  await waitUntil('Postgres accepts connections', async () => {
    try {
      return await pool.query('select 1')
    } catch (error) {
      if (hasExited()) throw error
    }
  })
}

/** The account that Postgres runs as: the current user, or `postgres` for root. undefined when `postgres` is missing. */
function findAccount(): Account | undefined {
  if (process.getuid?.() !== 0) return {}
  try {
    const queryId = (flag: string) =>
      Number(execFileSync('id', [flag, 'postgres'], { stdio: ['ignore', 'pipe', 'ignore'] }))
    return { uid: queryId('-u'), gid: queryId('-g') }
  } catch {
    return undefined
  }
}
