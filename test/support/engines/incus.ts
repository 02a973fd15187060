// Starts an Incus server for a test, in namespaces of its own: it sees no network, mount or process of the machine.
import { type ChildProcess, execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  closeSync,
  mkdirSync,
  mkdtempSync,
  openSync,
  readFileSync,
  realpathSync,
  rmSync,
} from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { findProgram, requires } from '../requires.ts'
import { waitUntil } from '../wait-until.ts'
import { buildBusyboxTree, findBusyboxProblem, packIncusImage } from './busybox-tree.ts'
import { listInstancesOf, removeCgroups } from './cgroups.ts'

export type Incusd = {
  /** The path of the server's Unix socket. */
  socket: string
  /** A directory for files of the test, which is removed. */
  dir: string
  /** The process that keeps the namespaces: `nsenter --target`. */
  namespacesPid: number
  /** Runs the `incus` command and returns its output. */
  incus(args: readonly string[], input?: string): string
  /** Runs a program in the namespaces of the server, and returns its output. */
  runInside(command: readonly string[]): string
  /** Kills the server with SIGKILL. Its instances continue to run. */
  kill(): Promise<void>
  /** Starts a server that was killed. */
  start(): Promise<void>
  /** Terminates all instances and removes everything. */
  close(): Promise<void>
}

export type IncusdOptions = {
  /** Shell commands that run in the namespaces before the server starts. */
  setup?: string
  /** A directory whose programs the server uses instead of those of the machine. */
  programs?: string
  /** Of the btrfs pool `default`. */
  poolMiB?: number
  /** Imports an image with this alias that contains busybox. null: none. */
  image?: string | null
}

/** Why Incus cannot be started on this machine, as a sentence. undefined: it can. */
export function findIncusProblem(): string | undefined {
  if (process.getuid?.() !== 0) return 'Incus needs root'
  const missing = requires('incusd', 'incus', 'unshare', 'nsenter', 'mkfs.btrfs', 'ip', 'dnsmasq')
  return missing || findBusyboxProblem()
}

/**
 * The first process of the namespaces. A new network namespace needs a new sysfs, on which the cgroups are mounted again. The
 * process reaps orphans. It exits when its stdin closes, which also happens when the test is killed, and all processes end with it.
 */
const HOLDER = `set -e
mkdir "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$1/cgroup" /sys/fs/cgroup
umount -l "$1/cgroup"
ip link set lo up
eval "$2"
echo ready
set +e
exec 3<&0
cat <&3 >/dev/null &
wait $!`

const PRESEED = (poolMiB: number) => `
storage_pools:
  - {name: default, driver: btrfs, config: {size: ${poolMiB}MiB}}
profiles:
  - {name: default, devices: {root: {path: /, pool: default, type: disk}}}
`

/** Starts a server with the btrfs pool `default`. Throws when it does not start. */
export async function startIncusd({
  setup = '',
  programs,
  poolMiB = 4096,
  image = 'busybox',
}: IncusdOptions = {}): Promise<Incusd> {
  // The path of a socket has at most 107 bytes.
  const root = realpathSync(mkdtempSync(join(tmpdir(), 'bw-incus-')))
  const [dir, incusDir] = [join(root, 'files'), join(root, 'incus')]
  // The users of the instances enter these directories.
  chmodSync(root, 0o711)
  for (const path of [dir, incusDir]) mkdirSync(path, { mode: 0o711 })
  const path = [...(programs === undefined ? [] : [programs]), process.env.PATH, '/usr/sbin', '/sbin'].join(
    ':',
  )
  const env = { ...process.env, INCUS_DIR: incusDir, PATH: path }
  const holder = await startHolder(root, setup, env)
  const logFile = join(root, 'incusd.log')
  let server: ChildProcess | undefined

  const incus: Incusd['incus'] = (args, input = '') =>
    execFileSync('incus', args, { env, input, encoding: 'utf8', stdio: 'pipe' })

  const enter = (command: readonly string[]) => [
    ...[`--target=${holder.pid}`, '--net', '--mount', '--uts', '--pid'],
    ...command,
  ]
  const runInside: Incusd['runInside'] = (command) =>
    execFileSync('nsenter', enter(command), { env, encoding: 'utf8', stdio: 'pipe', maxBuffer: 2 ** 27 })

  async function start() {
    const log = openSync(logFile, 'a')
    const incusd = findProgram('incusd') ?? 'incusd'
    // nsenter forks, because a process cannot change its own pid namespace.
    const starting = spawn('nsenter', enter([incusd, '--group', 'root']), {
      env,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    server = starting
    await waitUntil('Incus answers', () => {
      if (starting.exitCode !== null)
        throw new Error(`incusd has exited:\n${readFileSync(logFile, 'utf8').slice(-2000)}`)
      try {
        return incus(['query', '/1.0']).includes('"auth": "trusted"')
      } catch {
        return false
      }
    })
  }

  async function kill() {
    if (server === undefined || server.exitCode !== null) return
    const exited = once(server, 'exit')
    for (const pid of listChildren(server.pid)) process.kill(pid, 'SIGKILL')
    await exited
  }

  async function close() {
    await kill()
    await holder.kill()
    await removeCgroups(listInstancesOf(incusDir))
    rmSync(root, { recursive: true, force: true, maxRetries: 10 })
  }

  try {
    await start()
    incus(['admin', 'init', '--preseed'], PRESEED(poolMiB))
    if (image !== null) {
      buildBusyboxTree(join(dir, 'busybox'))
      packIncusImage(join(dir, 'busybox'), join(dir, 'busybox.tar'))
      incus(['image', 'import', join(dir, 'busybox.tar'), '--alias', image, '--quiet'])
    }
  } catch (error) {
    await close()
    throw error
  }
  const socket = join(incusDir, 'unix.socket')
  return { socket, dir, namespacesPid: holder.pid, incus, runInside, kill, start, close }
}

async function startHolder(root: string, setup: string, env: NodeJS.ProcessEnv) {
  const flags = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child', '--mount-proc']
  const parent = spawn('unshare', [...flags, 'sh', '-c', HOLDER, 'sh', root, setup], {
    env,
    stdio: ['pipe', 'pipe', 'pipe'],
  })
  const exited = once(parent, 'exit')
  let [output, errors] = ['', '']
  parent.stdout.on('data', (chunk) => {
    output += chunk
  })
  parent.stderr.on('data', (chunk) => {
    errors += chunk
  })
  await waitUntil('the namespaces exist', () => {
    if (parent.exitCode !== null) throw new Error(`The namespaces were not created: ${errors}`)
    return output.includes('ready\n')
  })
  const [pid] = listChildren(parent.pid)
  if (pid === undefined) throw new Error('The first process of the namespaces has exited.')
  return {
    pid,
    async kill() {
      if (parent.exitCode === null) process.kill(pid, 'SIGKILL')
      await exited
    },
  }
}

const listChildren = (pid: number | undefined): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
