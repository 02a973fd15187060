// Starts an Incus cluster for a test. Each member is a machine of its own: it has its own network, mounts and processes.
import { type ChildProcess, execFile, spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, existsSync, mkdirSync, openSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Test } from 'tap'
import { findProgram } from '../requires.ts'
import { LONG_DEADLINE_MS, waitUntil } from '../wait-until.ts'
import { buildBusyboxTree, packIncusImage } from './busybox-tree.ts'
import { HUB_ADDRESS, HUB_NAME, HUB_NETWORK } from './own-namespaces.ts'

export type IncusMember = {
  readonly name: string
  /** The origin of its API. */
  readonly url: string
  /** The path of its Unix socket. */
  readonly socket: string
  /** Runs the `incus` command on the member and returns its output. */
  incus(args: readonly string[], input?: string): Promise<string>
  /** Kills the server with SIGKILL. Its instances continue to run. */
  killServer(): Promise<void>
  /** Kills the server and all instances, like a power failure. */
  powerOff(): Promise<void>
  /** Starts a member after killServer() or powerOff(). */
  start(): Promise<void>
}

export type IncusCluster = {
  /** The first member has the database of the cluster: without it, no other member answers. */
  readonly members: readonly [IncusMember, IncusMember]
  /** Where programs of the test listen for boxes. */
  readonly hubAddress: string
  /** A directory for files of the test. */
  readonly dir: string
  /** The file of the certificate with which the members answer. */
  readonly certificateFile: string
}

/** The lowest value that Incus accepts: a member is offline after this time without a heartbeat, in seconds. */
const OFFLINE_THRESHOLD = 11

/**
 * The first process of a member, which reaps orphans. A new network namespace needs a new sysfs, on which the cgroups are
 * mounted again.
 */
const HOLDER = `set -e
mkdir -p "$1/cgroup"
mount --rbind /sys/fs/cgroup "$1/cgroup"
mount -t sysfs sysfs /sys
mount --rbind "$1/cgroup" /sys/fs/cgroup
umount -l "$1/cgroup"
hostname "$2"
ip link set lo up
echo waiting
read -r _
ip address add "$3" dev eth0
ip link set eth0 up
ip route add default via "$4"
echo ready
set +e
while :; do sleep 3600 & wait $!; done`

/**
 * Starts two members, with the btrfs pool `default` and the image `busybox`, which end after the test. Requires runInOwnNamespaces(),
 * which also ends and removes everything when the test is killed.
 * @param dir has the data of the members @param poolMiB the size of the pool on each member
 */
export async function startIncusCluster(
  t: Test,
  { dir, poolMiB = 4096 }: { dir: string; poolMiB?: number },
): Promise<IncusCluster> {
  const [first, second] = [createMember(dir, 1), createMember(dir, 2)]
  const close = async () => {
    await Promise.all([first.powerOff(), second.powerOff()])
  }
  t.teardown(close)
  await Promise.all([first.start(), second.start()])
  await first.incus(
    ['admin', 'init', '--preseed'],
    JSON.stringify({
      config: { 'core.https_address': first.host },
      cluster: { enabled: true, server_name: first.name },
      storage_pools: [{ name: 'default', driver: 'btrfs', config: { size: `${poolMiB}MiB` } }],
      profiles: [{ name: 'default', devices: { root: { path: '/', pool: 'default', type: 'disk' } } }],
    }),
  )
  await first.incus(['config', 'set', `cluster.offline_threshold=${OFFLINE_THRESHOLD}`])
  const token = (await first.incus(['cluster', 'add', second.name, '--quiet'])).trim().split('\n').at(-1)
  await second.incus(
    ['admin', 'init', '--preseed'],
    JSON.stringify({
      cluster: {
        enabled: true,
        server_name: second.name,
        server_address: second.host,
        cluster_token: token,
        member_config: [{ entity: 'storage-pool', name: 'default', key: 'size', value: `${poolMiB}MiB` }],
      },
    }),
  )
  const files = join(dir, 'files')
  mkdirSync(files)
  buildBusyboxTree(join(files, 'busybox'))
  packIncusImage(join(files, 'busybox'), join(files, 'busybox.tar'))
  await first.incus(['image', 'import', join(files, 'busybox.tar'), '--alias', 'busybox', '--quiet'])
  return {
    members: [first, second],
    hubAddress: HUB_ADDRESS,
    dir: files,
    certificateFile: join(dir, first.name, 'cluster.crt'),
  }
}

function createMember(parent: string, index: number): IncusMember & { host: string } {
  const name = `node${index}`
  const address = `${HUB_NETWORK}.${10 + index}`
  const host = `${address}:8443`
  const dir = join(parent, name)
  const logFile = join(parent, `${name}.log`)
  // The users of the instances enter these directories.
  mkdirSync(dir, { mode: 0o711 })
  const env = { ...process.env, INCUS_DIR: dir, PATH: `${process.env.PATH}:/usr/sbin:/sbin` }
  let boots = 0
  let holder: { process: ChildProcess; pid: number } | undefined
  let server: ChildProcess | undefined

  /** Runs a program in the network of the member. */
  const run = (command: string, args: readonly string[], input = ''): Promise<string> =>
    new Promise((resolve, reject) => {
      const namespace = `--net=/proc/${holder?.pid}/ns/net`
      const options = { env, timeout: LONG_DEADLINE_MS, killSignal: 'SIGKILL' as const }
      const child = execFile('nsenter', [namespace, command, ...args], options, (error, stdout, stderr) => {
        if (error === null) resolve(stdout)
        else reject(new Error(`${command} ${args.join(' ')}: ${stderr || error.message}`))
      })
      child.stdin?.on('error', () => undefined).end(input)
    })

  async function boot() {
    boots += 1
    const flags = ['--net', '--mount', '--uts', '--pid', '--fork', '--kill-child', '--mount-proc']
    const args = [dir, name, `${address}/24`, HUB_ADDRESS]
    const child = spawn('unshare', [...flags, 'sh', '-c', HOLDER, 'sh', ...args], {
      env,
      stdio: ['pipe', 'pipe', 'pipe'],
    })
    let [output, errors] = ['', '']
    child.stdout.on('data', (chunk) => {
      output += chunk
    })
    child.stderr.on('data', (chunk) => {
      errors += chunk
    })
    const waitForOutput = (line: string) =>
      waitUntil(`${name} is ${line}`, () => {
        if (child.exitCode !== null) throw new Error(`The namespaces of ${name} were not created: ${errors}`)
        return output.includes(`${line}\n`)
      })
    await waitForOutput('waiting')
    const [pid] = listChildren(child.pid)
    if (pid === undefined) throw new Error(`The first process of ${name} has exited.`)
    // The link of a namespace that was just killed may still exist.
    const link = `m${index}b${boots}`
    holder = { process: child, pid }
    await runHere('ip', [
      ...['link', 'add', link, 'type', 'veth', 'peer', 'name', 'eth0', 'netns', String(pid)],
    ])
    await runHere('ip', ['link', 'set', link, 'master', HUB_NAME, 'up'])
    child.stdin.end('\n')
    await waitForOutput('ready')
  }

  async function start() {
    if (holder === undefined) await boot()
    const log = openSync(logFile, 'a')
    const namespaces = [`--target=${holder?.pid}`, '--net', '--mount', '--uts', '--pid']
    const incusd = findProgram('incusd') ?? 'incusd'
    const starting = spawn('nsenter', [...namespaces, incusd, '--group', 'root'], {
      env,
      stdio: ['ignore', log, log],
    })
    closeSync(log)
    server = starting
    await waitUntil(`${name} has a socket`, () => {
      if (starting.exitCode !== null)
        throw new Error(`incusd has exited:\n${readFileSync(logFile, 'utf8').slice(-2000)}`)
      return existsSync(join(dir, 'unix.socket'))
    })
    await run('incus', ['admin', 'waitready', `--timeout=${Math.ceil(LONG_DEADLINE_MS / 1000)}`])
  }

  async function killServer() {
    if (server === undefined || server.exitCode !== null || server.signalCode !== null) return
    const exited = once(server, 'exit')
    for (const pid of listChildren(server.pid)) process.kill(pid, 'SIGKILL')
    await exited
  }

  async function powerOff() {
    if (holder === undefined) return
    const exited = once(holder.process, 'exit')
    const serverExited = server?.exitCode === null ? once(server, 'exit') : undefined
    process.kill(holder.pid, 'SIGKILL')
    await Promise.all([exited, serverExited])
    holder = undefined
  }

  return {
    name,
    host,
    url: `https://${host}`,
    socket: join(dir, 'unix.socket'),
    incus: (args, input) => run('incus', args, input),
    killServer,
    powerOff,
    start,
  }
}

const runHere = (command: string, args: readonly string[]): Promise<void> =>
  new Promise((resolve, reject) => {
    execFile(command, args, (error) => (error === null ? resolve() : reject(error)))
  })

const listChildren = (pid: number | undefined): number[] =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').split(' ').filter(Boolean).map(Number)
