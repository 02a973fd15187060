// The agent's configuration: from the environment, each variable checked, every fault named at once.
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { z } from 'zod'
import { isUuid } from '../shared/ids.ts'
import { LOG_LIMITS } from '../shared/limits.ts'
import { RETENTION } from './exec/detached/processes.ts'
import type { Retention } from './exec/detached/retention.ts'
import { RUNNER_KINDS, type RunnerKind } from './exec/detached/runner.ts'
import { SPAWNER_KINDS, type SpawnerKind } from './exec/spawner.ts'

export type AgentConfig = {
  /** The coordinator's http(s) URL, without a slash at its end. */
  url: string
  boxId: string
  /** Folder of what the agent keeps across restarts; it holds the file `token`. */
  stateDir: string
  /** Where commands and relative paths begin. */
  home: string
  reconnectMaxMs: number
  /** A unix socket that serves the same app, for trying it with curl. */
  socket: string | null
  /** How commands are started; null: the better one that this system has. */
  spawner: SpawnerKind | null
  /** What stays with a detached command; null: the better one that this system has. */
  runner: RunnerKind | null
  /** The most that is kept of one stream of a detached process; later output takes the place of the earliest. */
  logBytes: number
  /** Of detached processes that ended. */
  retention: Retention
  logLevel: (typeof LOG_LEVELS)[number]
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

const TiB = 1024 ** 4
const DAY_MS = 24 * 60 * 60 * 1000

const wholeNumber = (what: string, min: number, max: number) =>
  z.coerce.number(`is ${what}`).int(`is ${what}`).min(min, `is at least ${min}`).max(max, `is at most ${max}`)

const HTTP_URL = /^https?:\/\/[^\s/?#]+(\/[^\s?#]*)?$/

const environment = z.object({
  BOXWOOD_URL: z
    .string('is the http(s) URL of the coordinator')
    .regex(HTTP_URL, 'is the http(s) URL of the coordinator'),
  BOXWOOD_BOX: z.string('is the id of this box').refine(isUuid, 'is the id of this box, a UUID'),
  BOXWOOD_STATE: z
    .string('is the folder for what the agent keeps')
    .min(1, 'is the folder for what the agent keeps'),
  BOXWOOD_HOME: z.string().refine(isAbsolute, 'is an absolute path').optional(),
  BOXWOOD_RECONNECT_MAX_MS: z.coerce
    .number('is a number of milliseconds')
    .int('is a whole number of milliseconds')
    .min(100, 'is at least 100 ms')
    .max(3_600_000, 'is at most an hour')
    .default(30_000),
  BOXWOOD_SOCKET: z.string().min(1, 'is a path').optional(),
  BOXWOOD_SPAWNER: z.enum(SPAWNER_KINDS, `is one of ${SPAWNER_KINDS.join(', ')}`).optional(),
  BOXWOOD_RUNNER: z.enum(RUNNER_KINDS, `is one of ${RUNNER_KINDS.join(', ')}`).optional(),
  BOXWOOD_LOG_BYTES: wholeNumber('a number of bytes', LOG_LIMITS.stream.min, TiB).default(
    LOG_LIMITS.stream.default,
  ),
  BOXWOOD_ENDED_PROCESSES: wholeNumber('a number of processes', 1, 100_000).default(RETENTION.count),
  BOXWOOD_ENDED_DAYS: wholeNumber('a number of days', 1, 3650).default(RETENTION.ageMs / DAY_MS),
  BOXWOOD_ENDED_LOG_BYTES: wholeNumber('a number of bytes', 0, TiB).default(RETENTION.logBytes),
  BOXWOOD_LOG: z.enum(LOG_LEVELS, `is one of ${LOG_LEVELS.join(', ')}`).default('info'),
})

/** Throws an Error whose message has one line for each variable that is missing or wrong. */
export function readConfig(env: Record<string, string | undefined>): AgentConfig {
  const parsed = environment.safeParse(env)
  if (!parsed.success) {
    throw new Error(parsed.error.issues.map((issue) => `${issue.path.join('.')} ${issue.message}`).join('\n'))
  }
  const values = parsed.data
  return {
    url: withoutSlash(values.BOXWOOD_URL),
    boxId: values.BOXWOOD_BOX,
    stateDir: resolve(values.BOXWOOD_STATE),
    home: values.BOXWOOD_HOME ?? homedir(),
    reconnectMaxMs: values.BOXWOOD_RECONNECT_MAX_MS,
    socket: values.BOXWOOD_SOCKET ?? null,
    spawner: values.BOXWOOD_SPAWNER ?? null,
    runner: values.BOXWOOD_RUNNER ?? null,
    logBytes: values.BOXWOOD_LOG_BYTES,
    retention: {
      count: values.BOXWOOD_ENDED_PROCESSES,
      ageMs: values.BOXWOOD_ENDED_DAYS * DAY_MS,
      logBytes: values.BOXWOOD_ENDED_LOG_BYTES,
    },
    logLevel: values.BOXWOOD_LOG,
  }
}

const withoutSlash = (url: string): string => url.replace(/\/+$/, '')

/**
 * Where the coordinator is: in `<state>/url` when whoever runs it has put it there, so that a box outlives its move;
 * else `configured`.
 */
export async function readUrl(stateDir: string, configured: string): Promise<string> {
  const file = join(stateDir, 'url')
  const text = await readFile(file, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code === 'ENOENT') return configured
    throw error
  })
  if (!HTTP_URL.test(text.trim())) throw new Error(`${file} holds no http(s) URL`)
  return withoutSlash(text.trim())
}

/** The box's own secret, from `<state>/token`. Read anew each time: replacing the file needs no restart. */
export async function readToken(stateDir: string): Promise<string> {
  const token = (await readFile(join(stateDir, 'token'), 'utf8')).trim()
  if (!/^[\x21-\x7e]{1,256}$/.test(token)) throw new Error(`${join(stateDir, 'token')} holds no token`)
  return token
}
