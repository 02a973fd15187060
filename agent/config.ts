// Reads and validates the agent's configuration from environment variables and from files in the state directory.
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import * as z from 'zod'
import { DEFAULT_IDLE_CPU_PERCENT, LOG_LIMITS, PROMPT_LIMITS } from '../shared/limits.ts'
import { isUuid } from '../shared/uuid.ts'
import { validationMessage } from '../shared/validation-message.ts'
import { DEFAULT_RETENTION, type Retention } from './exec/detached/retention.ts'
import { RUNNER_KINDS, type RunnerKind } from './exec/detached/runner.ts'
import { SPAWNER_KINDS, type SpawnerKind } from './exec/spawner.ts'
import { isCoordinatorUrl } from './tunnel/coordinator-url.ts'

export type AgentConfig = {
  /** The coordinator's URL, without a trailing slash: see tunnel/coordinator-url.ts. */
  coordinatorUrl: string
  boxId: string
  /** Directory of the agent's persistent state. Contains the file `token`, and may contain `url`. */
  stateDir: string
  /** Default working directory of commands and base directory of relative paths. */
  home: string
  /** Upper bound of the delay between two attempts to connect to the coordinator. */
  maxReconnectDelayMs: number
  /** The directory with the builds of the agent, on a machine that joined by install.sh; null on other boxes. */
  prefix: string | null
  /** Implementation of the spawner. Null: native where available. */
  spawnerKind: SpawnerKind | null
  /** Implementation of the runner of detached commands. Null: native where available. */
  runnerKind: RunnerKind | null
  /** Bound of each output log of a detached process, in bytes. The oldest output is discarded first. */
  maxLogBytes: number
  /** Limits beyond which the oldest exited detached processes are deleted. */
  retention: Retention
  /** The CPU usage from which the box is active, in percent of one CPU. */
  idleCpuPercent: number
  /** Limits of prompts. `minutes` is the time limit of a run. */
  prompts: { runs: number; conversations: number; queued: number; minutes: number }
  logLevel: (typeof LOG_LEVELS)[number]
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const TiB = 1024 ** 4
const DAY_MS = 24 * 60 * 60 * 1000

const integerBetween = (min: number, max: number) => {
  const message = `must be an integer between ${min} and ${max}`
  return z.coerce.number(message).int(message).min(min, message).max(max, message)
}

const limit = ({ min, max, default: fallback }: { min: number; max: number; default: number }) =>
  integerBetween(min, max).default(fallback)

const MUST_BE_URL = "must be the coordinator's http:// or https:// URL, or unix: and the path of its socket"
const MUST_BE_BOX_ID = "must be the box's id, a UUID"
const MUST_BE_STATE_DIR = "must be the path of the agent's state directory"

const environmentSchema = z.object({
  BOXWOOD_URL: z.string(MUST_BE_URL).refine(isCoordinatorUrl, MUST_BE_URL),
  BOXWOOD_BOX: z.string(MUST_BE_BOX_ID).refine(isUuid, MUST_BE_BOX_ID),
  BOXWOOD_STATE: z.string(MUST_BE_STATE_DIR).min(1, MUST_BE_STATE_DIR),
  BOXWOOD_HOME: z.string().refine(isAbsolute, 'must be an absolute path').optional(),
  BOXWOOD_PREFIX: z.string().refine(isAbsolute, 'must be an absolute path').optional(),
  BOXWOOD_RECONNECT_MAX_MS: integerBetween(100, 3_600_000).default(30_000),
  BOXWOOD_SPAWNER: z.enum(SPAWNER_KINDS, `must be one of ${SPAWNER_KINDS.join(', ')}`).optional(),
  BOXWOOD_RUNNER: z.enum(RUNNER_KINDS, `must be one of ${RUNNER_KINDS.join(', ')}`).optional(),
  BOXWOOD_LOG_BYTES: integerBetween(LOG_LIMITS.stream.min, TiB).default(LOG_LIMITS.stream.default),
  BOXWOOD_EXITED_PROCESSES: integerBetween(1, 100_000).default(DEFAULT_RETENTION.count),
  BOXWOOD_EXITED_DAYS: integerBetween(1, 3650).default(DEFAULT_RETENTION.ageMs / DAY_MS),
  BOXWOOD_EXITED_LOG_BYTES: integerBetween(0, TiB).default(DEFAULT_RETENTION.totalLogBytes),
  BOXWOOD_IDLE_CPU_PERCENT: integerBetween(1, 100).default(DEFAULT_IDLE_CPU_PERCENT),
  BOXWOOD_PROMPT_RUNS: limit(PROMPT_LIMITS.runs),
  BOXWOOD_PROMPT_CONVERSATIONS: limit(PROMPT_LIMITS.conversations),
  BOXWOOD_PROMPT_QUEUE: limit(PROMPT_LIMITS.queued),
  BOXWOOD_PROMPT_MINUTES: limit(PROMPT_LIMITS.minutes),
  BOXWOOD_LOG: z.enum(LOG_LEVELS, `must be one of ${LOG_LEVELS.join(', ')}`).default('info'),
})

/** @throws Error whose message has one line for each missing or invalid variable */
export function readConfig(env: Record<string, string | undefined>): AgentConfig {
  const parsed = environmentSchema.safeParse(env, { reportInput: true })
  if (!parsed.success) {
    throw new Error(parsed.error.issues.map((issue) => validationMessage([issue])).join('\n'))
  }
  const values = parsed.data
  return {
    coordinatorUrl: trimTrailingSlashes(values.BOXWOOD_URL),
    boxId: values.BOXWOOD_BOX,
    stateDir: resolve(values.BOXWOOD_STATE),
    home: values.BOXWOOD_HOME ?? homedir(),
    maxReconnectDelayMs: values.BOXWOOD_RECONNECT_MAX_MS,
    prefix: values.BOXWOOD_PREFIX ?? null,
    spawnerKind: values.BOXWOOD_SPAWNER ?? null,
    runnerKind: values.BOXWOOD_RUNNER ?? null,
    maxLogBytes: values.BOXWOOD_LOG_BYTES,
    retention: {
      count: values.BOXWOOD_EXITED_PROCESSES,
      ageMs: values.BOXWOOD_EXITED_DAYS * DAY_MS,
      totalLogBytes: values.BOXWOOD_EXITED_LOG_BYTES,
    },
    idleCpuPercent: values.BOXWOOD_IDLE_CPU_PERCENT,
    prompts: {
      runs: values.BOXWOOD_PROMPT_RUNS,
      conversations: values.BOXWOOD_PROMPT_CONVERSATIONS,
      queued: values.BOXWOOD_PROMPT_QUEUE,
      minutes: values.BOXWOOD_PROMPT_MINUTES,
    },
    logLevel: values.BOXWOOD_LOG,
  }
}

const trimTrailingSlashes = (url: string): string => url.replace(/\/+$/, '')

/**
 * Reads the coordinator's URL from `<stateDir>/url`, or returns `configured` if that file does not exist. The provider
 * writes the coordinator's current address to the file.
 */
export async function readCoordinatorUrl(stateDir: string, configured: string): Promise<string> {
  const file = join(stateDir, 'url')
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return configured
    throw error
  })
  if (!isCoordinatorUrl(text.trim()))
    throw new Error(
      `${file} does not contain an http:// or https:// URL, or unix: and a path. Write the coordinator's URL to the file.`,
    )
  return trimTrailingSlashes(text.trim())
}

/** Reads the box's credential from `<stateDir>/token`. Not cached: replacing the file needs no restart. */
export async function readToken(stateDir: string): Promise<string> {
  const file = join(stateDir, 'token')
  const token = (await readFile(file, 'utf8')).trim()
  if (!/^[\x21-\x7e]{1,256}$/.test(token))
    throw new Error(`${file} does not contain a token. Write the box's token to the file, in one line.`)
  return token
}
