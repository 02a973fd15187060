// Namespaces and cgroups in which a test runs an engine: it sees no network, mount or process of the machine, and all that it
// has started ends with the test.
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import {
  chmodSync,
  mkdtempSync,
  openSync,
  readdirSync,
  readFileSync,
  realpathSync,
  writeFileSync,
} from 'node:fs'
import { rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { basename, join } from 'node:path'
import { type Program, requires } from '../requires.ts'
import { waitUntil } from '../wait-until.ts'

const SCRIPT = join(import.meta.dirname, 'sandbox.sh')
/** Also the name of the cgroups. The path of a socket in the directory has at most 107 bytes. */
const PREFIX = 'bw-engine-'
const OWNER_FILE = 'owner'
const ALL_NAMESPACES = ['--net', '--mount', '--uts', '--ipc', '--cgroup', '--pid']

export type Sandbox = {
  /** Removed at the end. Every user may enter it. */
  dir: string
  /** The arguments of `nsenter` that run the command. */
  enter(command: readonly string[]): string[]
  /** Runs a command and returns its output. */
  run(command: readonly string[], options?: { env?: NodeJS.ProcessEnv; input?: string }): string
  /** Starts a process whose output is appended to the file `log` of the directory. */
  spawn(command: readonly string[], options: { env?: NodeJS.ProcessEnv; log: string }): SandboxProcess
  /** Ends all processes, and removes everything. */
  close(): Promise<void>
}

export type SandboxProcess = {
  hasExited(): boolean
  /** Resolves when the process has exited. Its children continue to run. */
  kill(signal: NodeJS.Signals): Promise<void>
}

/** Why this machine cannot have a sandbox with these programs, as a sentence. undefined: it can. */
export function findSandboxProblem(programs: readonly Program[]): string | undefined {
  if (process.getuid?.() !== 0) return 'an engine in namespaces of its own needs root'
  return requires('unshare', 'nsenter', 'ip', 'findmnt', ...programs) || undefined
}

export async function startSandbox(): Promise<Sandbox> {
  await removeLeftovers()
  const dir = realpathSync(mkdtempSync(join(tmpdir(), PREFIX)))
  chmodSync(dir, 0o755)
  writeFileSync(join(dir, OWNER_FILE), describeProcess(process.pid) ?? '')
  const name = basename(dir)
  // The processes end when this process closes its end of stdin, which also happens when it is killed.
  const holder = spawn(SCRIPT, ['hold', name], { stdio: ['pipe', 'pipe', 'inherit'] })
  const exited = once(holder, 'exit')
  let output = ''
  holder.stdout.on('data', (chunk) => {
    output += chunk
  })
  await waitUntil('the namespaces exist', () => {
    if (holder.exitCode !== null) throw new Error('The namespaces of the engine were not created.')
    return output.includes('ready')
  })
  const [init] = listChildren(holder)
  const enter = (command: readonly string[]) => [
    `--target=${init}`,
    ...ALL_NAMESPACES,
    '--',
    SCRIPT,
    'enter',
    ...command,
  ]

  return {
    dir,
    enter,
    run: (command, { env = {}, input = '' } = {}) =>
      execFileSync('nsenter', enter(command), {
        env: { ...getEnv(), ...env },
        input,
        encoding: 'utf8',
        stdio: 'pipe',
        maxBuffer: 2 ** 27,
      }),
    spawn(command, { env = {}, log }) {
      const file = openSync(join(dir, log), 'a')
      const child = spawn('nsenter', enter(command), {
        env: { ...getEnv(), ...env },
        stdio: ['ignore', file, file],
      })
      const ended = once(child, 'exit')
      return {
        hasExited: () => child.exitCode !== null || child.signalCode !== null,
        async kill(signal) {
          if (child.exitCode !== null || child.signalCode !== null) return
          // nsenter waits for its child, which it has started in the pid namespace.
          for (const pid of listChildren(child)) {
            // Podman of an ordinary user runs itself again in a user namespace, as its child.
            const copies = listChildren({ pid }).filter((copy) => readCommand(copy) === readCommand(pid))
            for (const target of [pid, ...copies]) process.kill(target, signal)
          }
          await ended
        },
      }
    },
    async close() {
      holder.stdin.end()
      await exited
      await waitUntil('the cgroups of the engine have no processes', () => removeCgroups(name))
      await removeDirectory(dir)
    },
  }
}

const getEnv = (): NodeJS.ProcessEnv => ({
  ...process.env,
  PATH: `${process.env.PATH}:/usr/local/sbin:/usr/sbin:/sbin`,
})

const readCommand = (pid: number): string => {
  try {
    return readFileSync(`/proc/${pid}/cmdline`, 'utf8')
  } catch {
    return ''
  }
}

/** The children of all threads. */
const listChildren = ({ pid }: { pid?: number | undefined }): number[] => {
  try {
    return readdirSync(`/proc/${pid}/task`)
      .flatMap((thread) => readFileSync(`/proc/${pid}/task/${thread}/children`, 'utf8').split(' '))
      .filter(Boolean)
      .map(Number)
  } catch {
    return []
  }
}

/** Removes what test processes have left that were killed. Their engines have ended with them. */
async function removeLeftovers(): Promise<void> {
  for (const name of readdirSync(tmpdir()).filter((name) => name.startsWith(PREFIX))) {
    const dir = join(tmpdir(), name)
    const owner = readOwner(dir)
    // Another process may be creating the directory, or its owner may be in another pid namespace, as its cgroups show.
    if (owner === '' || describeProcess(Number.parseInt(owner, 10)) === owner || !removeCgroups(name))
      continue
    await removeDirectory(dir)
  }
}

function readOwner(dir: string): string {
  try {
    return readFileSync(join(dir, OWNER_FILE), 'utf8')
  } catch {
    return ''
  }
}

/** Returns false while they have processes. */
function removeCgroups(name: string): boolean {
  try {
    execFileSync(SCRIPT, ['clean', name], { stdio: 'ignore' })
    return true
  } catch {
    return false
  }
}

const removeDirectory = (dir: string): Promise<void> =>
  rm(dir, { recursive: true, force: true, maxRetries: 10 })

/** The pid and the start time, which no later process with the same pid has. undefined: there is no such process. */
function describeProcess(pid: number): string | undefined {
  try {
    const stat = readFileSync(`/proc/${pid}/stat`, 'utf8')
    return `${pid} ${stat.slice(stat.lastIndexOf(')') + 2).split(' ')[19]}`
  } catch {
    return undefined
  }
}
