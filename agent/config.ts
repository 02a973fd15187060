// The agent's configuration: from the environment, each variable checked, every fault named at once.
import { readFile } from 'node:fs/promises'
import { homedir } from 'node:os'
import { isAbsolute, join, resolve } from 'node:path'
import { z } from 'zod'
import { isUuid } from '../shared/ids.ts'
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
  logLevel: (typeof LOG_LEVELS)[number]
}

const LOG_LEVELS = ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'] as const

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
