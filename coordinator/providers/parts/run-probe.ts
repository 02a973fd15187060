// Runs the command of a probe, whose exit status says whether a part of the isolation works on this machine.
import { spawn } from 'node:child_process'
import { PermanentProviderError } from '../provider.ts'
import { isInstalled, SYSTEM_PATH } from './system-path.ts'

/**
 * The probe has not answered: whether the part works is not known. What needs the answer fails, because a weaker part must not be
 * chosen for this reason.
 */
export class InconclusiveProbeError extends PermanentProviderError {
  override name = 'InconclusiveProbeError'
}

export type ProbeOptions = {
  /** Names the part in messages: "the probe of isolation level bubblewrap". */
  description: string
  /** Called each 15 s while the probe runs, with a sentence. */
  onSlow(message: string): void
  /** Only a coordinator that runs as root can set it. */
  user?: { uid: number; gid: number }
  /** Default: 15 s. */
  slowMs?: number
  /** Default: MAX_CPU_SECONDS. */
  maxCpuSeconds?: number
}

/**
 * Seconds of processor time that a process of a probe may use. A probe needs a tenth of one. A limit of the elapsed time would
 * stop probes on a busy machine.
 */
const MAX_CPU_SECONDS = 60
const MAX_ATTEMPTS = 3
const SLOW_MS = 15_000
/** The exit status of a command that was terminated by SIGKILL or SIGXCPU: the machine has no memory, or the limit is used. */
const KILLED_STATUSES: readonly (number | null)[] = [128 + 9, 128 + 24]

const LIMIT_CPU = 'ulimit -t "$1"; shift; exec "$@"'

/**
 * Returns null when the command exits with 0, else the last line of its stderr. Waits as long as the command runs. A command that
 * fails is repeated: when one of its processes is killed, the others may report it as a failure of their own. Throws
 * InconclusiveProbeError when the command cannot be started, or when it never succeeds and was killed.
 */
export async function runProbe(command: readonly string[], options: ProbeOptions): Promise<string | null> {
  const [program = ''] = command
  if (!program.includes('/') && !isInstalled(program)) return `${program} is not installed`
  let failure = ''
  let kills = 0
  for (let attempt = 1; attempt <= MAX_ATTEMPTS; attempt++) {
    const result = await runOnce(command, options)
    if (result.status === 0) return null
    if (result.wasKilled) kills += 1
    else failure = result.output || `${program} exited with code ${result.status}`
  }
  if (kills === 0) return failure
  const times = kills === 1 ? 'once' : `${kills} times`
  throw new InconclusiveProbeError(
    `${options.description} was killed ${times}: this machine has too little memory, or the probe used too much processor time. Try again when the machine is less busy.`,
  )
}

type ProbeResult = { status: number | null; wasKilled: boolean; output: string }

async function runOnce(
  command: readonly string[],
  { description, onSlow, slowMs = SLOW_MS, maxCpuSeconds = MAX_CPU_SECONDS, user }: ProbeOptions,
): Promise<ProbeResult> {
  const startedAt = performance.now()
  const timer = setInterval(() => {
    const seconds = Math.round((performance.now() - startedAt) / 1000)
    onSlow(`${description} has been running for ${seconds} s on this busy machine`)
  }, slowMs)
  try {
    const child = spawn('/bin/sh', ['-c', LIMIT_CPU, 'sh', String(maxCpuSeconds), ...command], {
      ...user,
      detached: true,
      stdio: ['ignore', 'ignore', 'pipe'],
      env: { PATH: SYSTEM_PATH },
      cwd: '/',
    })
    let output = ''
    child.stderr.setEncoding('utf8').on('data', (text: string) => {
      output += text
    })
    const [status, signal] = await new Promise<[number | null, string | null]>((resolve, reject) => {
      child.on('error', reject).on('close', (...exit) => resolve(exit))
      // When the probe is killed, its other processes may wait for it, with its stderr open.
      child.on('exit', () => killGroup(child.pid))
    })
    const wasKilled = signal !== null || KILLED_STATUSES.includes(status)
    return { status, wasKilled, output: output.trim().split('\n').at(-1) ?? '' }
  } catch (error) {
    // The shell could not be started, which says nothing about the program.
    const { message } = error as Error
    throw new InconclusiveProbeError(`${description} could not be started: ${message}`, { cause: error })
  } finally {
    clearInterval(timer)
  }
}

/** The probe is the leader of its process group. */
function killGroup(leader: number | undefined): void {
  try {
    if (leader !== undefined) process.kill(-leader, 'SIGKILL')
  } catch {
    // No process of the group is left.
  }
}
