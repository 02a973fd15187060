// Limits that operators rarely change: the fields of an optional JSON file. docs/configuration.md has the same table.
import { readFileSync } from 'node:fs'
import { z } from 'zod'
import {
  DEFAULT_IDLE_CPU_PERCENT,
  HTTP_LIMITS,
  LIMITS,
  LOG_LIMITS,
  PROMPT_LIMITS,
} from '../../shared/limits.ts'
import { validationMessage } from '../../shared/validation-message.ts'
import { ConfigError } from './define-settings.ts'

const MAX = 999_999_999_999
const MAX_TIMEOUT_SECONDS = 3600

type Bounds = { min?: number; max?: number; default: number }

const limit = ({ min = 1, max = MAX, default: fallback }: Bounds, description: string) =>
  z.int().min(min).max(max).default(fallback).meta({ description })

export const limitsSchema = z.strictObject({
  maxConnections: limit(
    HTTP_LIMITS.connections,
    'open connections of clients and agents; half of them are for those with a credential',
  ),
  addressConnections: limit(
    HTTP_LIMITS.addressConnections,
    'open connections without a credential, per client address; at the limit the oldest one with an incomplete request is closed',
  ),
  headersTimeoutSeconds: limit(
    { ...HTTP_LIMITS.headersSeconds, max: MAX_TIMEOUT_SECONDS },
    'seconds in which the request line and headers must arrive',
  ),
  idleTimeoutSeconds: limit(
    { ...HTTP_LIMITS.idleSeconds, max: MAX_TIMEOUT_SECONDS },
    'seconds after which a connection without a request is closed',
  ),
  edgeRequestsPerSecond: limit(
    { default: LIMITS.edgeRequestsPerSecond },
    'edge requests per second, per key and per box',
  ),
  edgeConcurrency: limit(
    { default: LIMITS.edgeConcurrency },
    'concurrent edge requests, per key and per box',
  ),
  edgeStreams: limit({ default: LIMITS.streamsPerKey }, 'concurrent event streams, per key'),
  edgeAttachments: limit(
    { default: LIMITS.edgeAttachments },
    'concurrent attached commands and terminals, per key and per box',
  ),
  edgeForwards: limit(
    { default: LIMITS.edgeForwards },
    'concurrent TCP connections of `box forward`, per key and per box',
  ),
  terminals: limit({ default: LIMITS.openTerminals }, 'open terminals, per workspace'),
  commandRecords: limit(
    { default: 10_000 },
    'commands in the history of a box; the oldest are deleted first',
  ),
  commandOutputMiB: limit(
    { default: 256 },
    'MiB of output in the history of a box; output of the oldest commands is deleted first',
  ),
  idleCpuPercent: limit(
    { default: DEFAULT_IDLE_CPU_PERCENT, max: 100 },
    'a box is not idle while it uses this much CPU, in percent of one CPU',
  ),
  logBytes: limit(
    LOG_LIMITS.stream,
    'bytes on the disk of a box per stream of a detached process; the oldest output is discarded first',
  ),
  exitedLogBytes: limit(
    LOG_LIMITS.exitedProcesses,
    'bytes on the disk of a box for the output of all exited detached processes; the oldest are deleted first',
  ),
  promptRuns: limit(PROMPT_LIMITS.runs, 'runs of coding agents in progress on a box'),
  promptConversations: limit(
    PROMPT_LIMITS.conversations,
    'conversations that a box stores; a new one replaces the least recently active one, which is deleted with its runs',
  ),
  promptQueue: limit(PROMPT_LIMITS.queued, 'prompts that wait in the queue of a box'),
  promptMinutes: limit(
    PROMPT_LIMITS.minutes,
    'minutes after which a run of a coding agent is ended, without the time in which the box is frozen',
  ),
})
export type Limits = Readonly<z.infer<typeof limitsSchema>>

/** Reads the file of BOXWOOD_LIMITS; null: the defaults. Throws ConfigError. */
export function readLimits(file: string | null): Limits {
  if (file === null) return limitsSchema.parse({})
  const result = limitsSchema.safeParse(readJson(file))
  if (!result.success)
    throw new ConfigError(`${file}: ${validationMessage(result.error.issues, 'the content')}.`)
  return result.data
}

function readJson(file: string): unknown {
  try {
    return JSON.parse(readFileSync(file, 'utf8'))
  } catch (error) {
    const problem =
      error instanceof SyntaxError ? 'is not JSON' : `cannot be read: ${(error as Error).message}`
    throw new ConfigError(`BOXWOOD_LIMITS: ${file} ${problem}.`)
  }
}
