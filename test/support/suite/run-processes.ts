// Finds and terminates the processes that a run of the test suite has started, also detached ones.
import { readdirSync, readFileSync, readlinkSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'

/** Child processes inherit this variable. */
export const RUN_VARIABLE = 'BOXWOOD_TEST_RUN'

export type Run = {
  /** The value of RUN_VARIABLE. */
  id: string
  /** TMPDIR of the run. Processes of boxes, whose environment is cleared, have a path below it. */
  tempDir: string
  /** The directory of databases in memory; null: they are below `tempDir`. */
  memoryDir: string | null
}

export const getRunDirs = ({ tempDir, memoryDir }: Run): string[] =>
  memoryDir === null ? [tempDir] : [tempDir, memoryDir]

export type RunProcess = { pid: number; command: string }

type ProcessEntry = RunProcess & { parent: number; isMarked: boolean }

/** The processes of the run and their descendants, without this process and its ancestors. */
export function findRunProcesses(run: Run): RunProcess[] {
  const entries = readdirSync('/proc')
    .filter((name) => /^\d+$/.test(name))
    .flatMap((name) => readProcess(Number(name), run) ?? [])
  const parents = new Map(entries.map(({ pid, parent }) => [pid, parent]))
  const excluded = new Set<number>()
  for (let pid: number | undefined = process.pid; pid; pid = parents.get(pid)) excluded.add(pid)
  const found = new Set(entries.filter((entry) => entry.isMarked).map(({ pid }) => pid))
  const isFound = (pid: number | undefined): boolean =>
    pid !== undefined && !excluded.has(pid) && (found.has(pid) || isFound(parents.get(pid)))
  return entries.filter(({ pid }) => isFound(pid)).map(({ pid, command }) => ({ pid, command }))
}

/** undefined for a process that has exited, and for a zombie. */
function readProcess(pid: number, run: Run): ProcessEntry | undefined {
  const stat = read(pid, 'stat')
  // The name of the program can contain spaces and parentheses.
  const [state, parent] = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  if (state === undefined || state === '' || state === 'Z') return undefined
  const commandLine = read(pid, 'cmdline')
  const environment = read(pid, 'environ')
  const texts = [environment, commandLine, readLink(pid, 'cwd'), readLink(pid, 'root')]
  const isMarked =
    environment.split('\0').includes(`${RUN_VARIABLE}=${run.id}`) ||
    getRunDirs(run).some((dir) => texts.some((text) => `${text}/`.includes(`${dir}/`)))
  return { pid, parent: Number(parent), isMarked, command: commandLine.replaceAll('\0', ' ').trim() }
}

function read(pid: number, name: string): string {
  try {
    return readFileSync(`/proc/${pid}/${name}`, 'utf8')
  } catch {
    // The process has exited or belongs to another user.
    return ''
  }
}

function readLink(pid: number, name: string): string {
  try {
    return readlinkSync(`/proc/${pid}/${name}`)
  } catch {
    return ''
  }
}

/**
 * Sends SIGTERM, and SIGKILL to the processes that run after `graceMs`. Repeats the search, because a process can start
 * others in between. Returns the processes that run after 5 s more: those of other users.
 */
export async function terminateRun(run: Run, { graceMs }: { graceMs: number }): Promise<RunProcess[]> {
  const start = Date.now()
  const terminated = new Set<number>()
  for (;;) {
    const processes = findRunProcesses(run)
    const elapsed = Date.now() - start
    if (processes.length === 0 || elapsed > graceMs + 5000) return processes
    for (const { pid } of processes) {
      if (elapsed >= graceMs) sendSignal(pid, 'SIGKILL')
      else if (!terminated.has(pid)) sendSignal(pid, 'SIGTERM')
      terminated.add(pid)
    }
    await sleep(50)
  }
}

function sendSignal(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal)
  } catch {
    // The process has exited or belongs to another user.
  }
}
