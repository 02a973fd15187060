// Runs git on the box: without questions, with a time limit and bounded output, and terminated when the agent stops.

import { shellQuote } from '../../shared/shell-quote.ts'
import type { CreateEnvironment } from '../exec/environment.ts'
import { createSpawner, type SpawnerKind } from '../exec/spawner.ts'
import { createProber } from '../prompts/detection/probe.ts'
import type { StartTimer } from '../running-clock.ts'

export type GitOptions = {
  createEnv: CreateEnvironment
  startTimer: StartTimer
  spawnerKind: SpawnerKind | null
  /** The protocols of remote repositories, separated by colons. Default: https. */
  protocols?: string
  /** The time limit of one git command. Default: 15 minutes. */
  timeoutMs?: number
}

export type GitRun = {
  cwd: string
  /** The variables of the box. */
  env: Record<string, string>
  /** Settings for this command, in order. */
  config?: readonly (readonly [name: string, value: string])[]
}

export type Git = {
  /**
   * Returns the output.
   * @throws GitError when git fails, and GitInterruptedError when it was terminated
   */
  run(args: readonly string[], run: GitRun): Promise<string>
  /** Terminates the running commands and waits for them. */
  close(): Promise<void>
}

/** The message is the one of git, for the user. */
export class GitError extends Error {}
/** A signal has terminated git: the box or the agent stops, or a user has killed it. */
export class GitInterruptedError extends Error {}

const TIMEOUT_MS = 15 * 60_000
const MAX_BYTES = 16 * 1024
const MAX_MESSAGE = 500

/** These would make git use other directories, or wait for an answer. */
const REMOVED_VARIABLES = ['GIT_DIR', 'GIT_WORK_TREE', 'GIT_INDEX_FILE', 'GIT_COMMON_DIR', 'SSH_ASKPASS']

/** A transfer that is slower than 1000 bytes per second for a minute fails. No program provides credentials. */
const SETTINGS = [
  ['credential.helper', ''],
  ['core.askPass', ''],
  ['http.lowSpeedLimit', '1000'],
  ['http.lowSpeedTime', '60'],
] as const

export function createGit({ createEnv, startTimer, spawnerKind, ...options }: GitOptions): Git {
  const { protocols = 'https', timeoutMs = TIMEOUT_MS } = options
  const prober = createProber(createSpawner(spawnerKind), startTimer)

  return {
    async run(args, { cwd, env, config = [] }) {
      const command = `exec git ${args.map(shellQuote).join(' ')}`
      const { exitCode, timedOut, stdout, stderr } = await prober.run(command, {
        cwd,
        env: {
          ...omit(createEnv(env), REMOVED_VARIABLES),
          LC_ALL: 'C.UTF-8',
          GIT_TERMINAL_PROMPT: '0',
          GIT_ASKPASS: '',
          GIT_ALLOW_PROTOCOL: protocols,
          ...toConfigVariables([...SETTINGS, ...config]),
        },
        timeoutMs,
        maxBytes: MAX_BYTES,
      })
      if (exitCode === 0) return stdout.trim()
      if (timedOut) throw new GitError(`git did not finish within ${timeoutMs / 60_000} minutes`)
      if (exitCode === 127) throw new GitError('git is not installed on the box')
      // A child of git was terminated.
      if (exitCode === null || /died of signal 15/.test(stderr)) throw new GitInterruptedError()
      throw new GitError(summarize(stderr))
    },
    close: prober.close,
  }
}

function toConfigVariables(settings: readonly (readonly [string, string])[]): Record<string, string> {
  const variables: Record<string, string> = { GIT_CONFIG_COUNT: String(settings.length) }
  settings.forEach(([name, value], index) => {
    variables[`GIT_CONFIG_KEY_${index}`] = name
    variables[`GIT_CONFIG_VALUE_${index}`] = value
  })
  return variables
}

const omit = (variables: Record<string, string>, names: readonly string[]): Record<string, string> =>
  Object.fromEntries(Object.entries(variables).filter(([name]) => !names.includes(name)))

/** The lines in which git says why it has failed, without those of its progress. */
function summarize(stderr: string): string {
  const lines = stderr.split(/[\r\n]+/).map((line) => line.trim())
  const reasons = lines.filter((line) => /^(fatal|error|remote): /.test(line))
  const text = (reasons.length > 0 ? reasons : lines.filter((line) => line !== '').slice(-3))
    .join('; ')
    .replace(/^(?:fatal|error): /, '')
  return text === '' ? 'git failed without a message' : text.slice(0, MAX_MESSAGE)
}
