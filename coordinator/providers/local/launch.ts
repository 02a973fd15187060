// Launches a box's init in its own session, independent of the coordinator, and finds the init of a launched box.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, renameSync, rmSync, statSync, writeFileSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseProcStat } from '../../../shared/proc-stat.ts'
import {
  isAlive,
  listChildren,
  listChildrenOfMainThread,
  type ProcessIdentity,
  readArgv,
  readIdentity,
} from '../parts/proc.ts'
import { SYSTEM_PATH } from '../parts/system-path.ts'
import type { BoxPaths } from './machine-file.ts'
import { NotRegularFileError, readEnd, readStart } from './read-bounded.ts'

/** At a start, a larger log of the init is rotated; one old log is retained. */
const MAX_LOG_BYTES = 1024 * 1024
const MAX_FINAL_OUTPUT_BYTES = 4 * 1024
const MAX_LAUNCH_RECORD_BYTES = 4 * 1024
const START_TIMEOUT_MS = 10_000
/** The agent takes longer to start, so the polls do not delay the box. */
const POLL_MS = 20

/**
 * Arguments: RECORD CGROUP... -- COMMAND... The launcher writes its identity to RECORD and joins the cgroups before
 * it executes the command, so a running box can always be found and is always limited.
 */
const LAUNCHER = `set -e
umask 022
record=$1
shift
read -r boot_id </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
printf '%s\\n%s\\n' "$boot_id" "$stat" >"$record.new"
mv "$record.new" "$record"
while [ "$1" != -- ]; do
  echo $$ >"$1/cgroup.procs"
  shift
done
shift
exec "$@"`

export type LaunchInput = {
  paths: BoxPaths
  cgroups: string[]
  command: string[]
  /** The complete environment of the box. */
  env: Record<string, string>
  /** The path of the init script as the box sees it. */
  initScript: string
}

/** Launches the command and returns its init once that is running. Throws with the last log lines on failure. */
export async function launchBox({
  paths,
  cgroups,
  command,
  env,
  initScript,
}: LaunchInput): Promise<ProcessIdentity> {
  rotateLog(paths.log)
  rmSync(paths.launchRecord, { recursive: true, force: true })
  writeFileSync(paths.launchRecord, '')
  const log = openSync(paths.log, 'a', 0o600)
  const logOffset = statSync(paths.log).size
  // env -i: tools that instrument this process may add variables such as NODE_OPTIONS to the processes it spawns.
  const assignments = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const boxCommand = ['/usr/bin/env', '-i', ...assignments, ...command]
  const args = ['-c', LAUNCHER, 'sh', paths.launchRecord, ...cgroups, '--', ...boxCommand]
  const child = spawn('/bin/sh', args, {
    detached: true,
    stdio: ['ignore', log, log],
    env: { PATH: SYSTEM_PATH },
    cwd: '/',
  })
  closeSync(log)
  await once(child, 'spawn')
  child.unref()
  const deadline = performance.now() + START_TIMEOUT_MS
  for (;;) {
    await sleep(POLL_MS)
    // A poll that misses the init is repeated.
    const init = findInit(paths, initScript, (pid) => listChildrenOfMainThread(pid) ?? listChildren(pid))
    if (init !== null) return init
    const exited = child.exitCode !== null || child.signalCode !== null
    if (exited || performance.now() > deadline) {
      // The box can write to its log.
      const output = readEnd(paths.log, MAX_FINAL_OUTPUT_BYTES, logOffset).toString('utf8').trim()
      const lastLines = output.split('\n').slice(-3).join(' ')
      const problem = exited ? 'exited immediately' : `was not ready after ${START_TIMEOUT_MS / 1000} s`
      throw new Error(
        `The init of the box ${problem}. See ${paths.log}. Final output: ${lastLines || 'none'}`,
      )
    }
  }
}

/** The box's most recent launcher process, if it is running. After its exec it is the box's command. */
export function findLauncher(paths: BoxPaths): ProcessIdentity | null {
  let record: string
  try {
    record = readStart(paths.launchRecord, MAX_LAUNCH_RECORD_BYTES).toString('utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT' || error instanceof NotRegularFileError)
      return null
    throw error
  }
  const [bootId = '', statLine = ''] = record.split('\n')
  const stat = parseProcStat(statLine)
  const launcher = stat && { pid: Number.parseInt(statLine, 10), startTicks: stat.startTicks, bootId }
  return launcher !== null && isAlive(launcher) ? launcher : null
}

/** The box's init: the launcher process itself, or its child when namespaces are used. */
export function findInit(
  paths: BoxPaths,
  initScript: string,
  list: (pid: number) => number[] = listChildren,
): ProcessIdentity | null {
  const launcher = findLauncher(paths)
  if (launcher === null) return null
  const candidates = [launcher.pid, ...list(launcher.pid)]
  const initPid = candidates.find((pid) => readArgv(pid)[1] === initScript)
  return initPid === undefined ? null : readIdentity(initPid)
}

function rotateLog(path: string): void {
  try {
    if (statSync(path).size > MAX_LOG_BYTES) renameSync(path, `${path}.1`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
