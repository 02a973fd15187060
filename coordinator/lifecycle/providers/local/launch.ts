// Starts a box's processes apart from this one, and finds a box that an earlier coordinator started.
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { closeSync, openSync, readFileSync, renameSync, rmSync, statSync } from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { SYSTEM_PATH } from './environment.ts'
import type { BoxPaths } from './machine-file.ts'
import { argvOf, childrenOf, identify, isAlive, type ProcessIdentity, parseStat } from './proc.ts'

/** The init's log is put aside at a start when it is larger than this; one old one is kept. */
const MAX_LOG_BYTES = 1024 * 1024
const START_TIMEOUT_MS = 10_000
const POLL_MS = 5

/**
 * Arguments: RECORD CGROUP... -- COMMAND... It writes down who it is before it becomes the box, so that there is
 * no moment in which a box runs that nobody could find; and it is in its cgroups before it becomes the box.
 */
const LAUNCHER = `set -e
umask 022
record=$1
shift
read -r boot </proc/sys/kernel/random/boot_id
read -r stat </proc/$$/stat
printf '%s\\n%s\\n' "$boot" "$stat" >"$record.new"
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
  /** All of the environment that the box gets. */
  env: Record<string, string>
  /** The path of the init script in the box. */
  initScript: string
}

/** Starts the command in a session of its own and answers its init once that runs. Throws what stopped it. */
export async function launch({ paths, cgroups, command, env, initScript }: LaunchInput) {
  rotateLog(paths.log)
  rmSync(paths.launched, { force: true })
  const log = openSync(paths.log, 'a', 0o600)
  const logStart = statSync(paths.log).size
  // env -i: what watches this process may add to the environment of what it spawns, such as NODE_OPTIONS.
  const assignments = Object.entries(env).map(([name, value]) => `${name}=${value}`)
  const box = ['/usr/bin/env', '-i', ...assignments, ...command]
  const child = spawn('/bin/sh', ['-c', LAUNCHER, 'sh', paths.launched, ...cgroups, '--', ...box], {
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
    const init = findInit(paths, initScript)
    if (init !== null) return init
    const ended = child.exitCode !== null || child.signalCode !== null
    if (ended || performance.now() > deadline) {
      const said = readFileSync(paths.log).subarray(logStart).toString('utf8').trim().split('\n').slice(-3)
      const what = ended ? 'ended at once' : `was not ready after ${START_TIMEOUT_MS / 1000} s`
      throw new Error(`the box's init ${what}: ${said.join(' ') || 'it said nothing'}`)
    }
    await sleep(POLL_MS)
  }
}

/** The process that was launched last for this box, if it still runs. */
export function findLauncher(paths: BoxPaths): ProcessIdentity | null {
  let record: string
  try {
    record = readFileSync(paths.launched, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return null
    throw error
  }
  const [bootId = '', line = ''] = record.split('\n')
  const stat = parseStat(line)
  const launcher = stat && { pid: Number.parseInt(line, 10), startTicks: stat.startTicks, bootId }
  return launcher !== null && isAlive(launcher) ? launcher : null
}

/** The box's init: the launched process itself, or its child where namespaces stand between. */
export function findInit(paths: BoxPaths, initScript: string): ProcessIdentity | null {
  const launcher = findLauncher(paths)
  if (launcher === null) return null
  const pid = [launcher.pid, ...childrenOf(launcher.pid)].find((one) => argvOf(one)[1] === initScript)
  return pid === undefined ? null : identify(pid)
}

function rotateLog(path: string): void {
  try {
    if (statSync(path).size > MAX_LOG_BYTES) renameSync(path, `${path}.1`)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
