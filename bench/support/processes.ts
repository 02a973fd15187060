// Runs and terminates child processes, and reads the memory and CPU time of a process from /proc.
import { type ChildProcess, type SpawnOptions, spawn } from 'node:child_process'
import { once } from 'node:events'
import { readFile } from 'node:fs/promises'

/** Runs a program until it exits. Rejects with its stderr when the exit code is not 0. */
export async function runProgram(program: string, args: string[], options: SpawnOptions = {}): Promise<void> {
  const child = spawn(program, args, { stdio: ['ignore', 'ignore', 'pipe'], ...options })
  let stderr = ''
  child.stderr?.on('data', (chunk) => {
    stderr += chunk
  })
  const [code] = await once(child, 'close')
  if (code !== 0) throw new Error(`${program} ${args.join(' ')} exited with ${code}: ${stderr}`)
}

/** Sends the signal and waits until the process has exited. */
export async function terminate(child: ChildProcess, signal: NodeJS.Signals = 'SIGTERM'): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return
  const exited = once(child, 'exit')
  child.kill(signal)
  await exited
}

/** The resident set size of a process in bytes. */
export async function readResidentBytes(pid: number): Promise<number> {
  const status = await readFile(`/proc/${pid}/status`, 'utf8')
  return Number(/^VmRSS:\s+(\d+)/m.exec(status)?.[1]) * 1024
}

/** The CPU time that a process has used (utime + stime), in seconds. /proc/<pid>/stat counts 100 ticks per second. */
export async function readCpuSeconds(pid: number): Promise<number> {
  const [user = 0, system = 0] = await readCpuTicks(pid)
  return (user + system) / 100
}

/** The CPU time of a process and of the children that it has waited for, in seconds. */
export async function readCpuSecondsWithChildren(pid: number): Promise<number> {
  const ticks = await readCpuTicks(pid)
  return ticks.reduce((sum, each) => sum + each, 0) / 100
}

/** utime, stime, cutime and cstime. */
async function readCpuTicks(pid: number): Promise<number[]> {
  const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
  const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
  return fields.slice(11, 15).map(Number)
}

/** The pid of a program that was started. @throws Error when the start failed */
export function getPid({ pid, spawnfile }: ChildProcess): number {
  if (pid === undefined) throw new Error(`${spawnfile} did not start`)
  return pid
}
