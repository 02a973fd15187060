// The files of one detached process: metadata, start, termination requests, exit.
//
//   meta.json       written before anything runs
//   started         hard-linked into place by the command's own process just before execve (native/run.c)
//   kill, timeout   time of the termination request, written before the first signal is sent
//   exit            renamed into place by the runner
//   stdout, stderr  the output, appended by the runner
//   stdout.times, stderr.times  when the output was written; see native/run.c and output-times.ts
//   control, stdin  FIFOs of an attached command, created by the runner
//   stdin-end       the length of stdin; written when the client has sent all of it
//   detached        the client has detached: the attached command continues as a detached one
import { existsSync, linkSync, rmSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { rename, rm } from 'node:fs/promises'
import { constants } from 'node:os'
import { join } from 'node:path'
import * as z from 'zod'
import { agentStartRequestSchema } from '../../../shared/api/processes.ts'
import { LIMITS } from '../../../shared/limits.ts'
import { replaceFile } from '../../durable-file.ts'
import { readStateFile, writeStateFile } from '../../state-file.ts'
import { RUNNER_KINDS } from './runner.ts'

const metadataSchema = z.object({
  processId: agentStartRequestSchema.shape.processId,
  /** Hash of the start request. A second request with the same id must have the same hash. */
  digest: z.string(),
  command: z.string(),
  /** Working directory as given in the request; ~ when the request has none. */
  cwd: z.string(),
  startedAt: z.int(),
  /** Milliseconds since the epoch. */
  deadline: z.int().nullable(),
  bootId: z.string(),
  /** Bound of each log. Fixed for the life of the process, because readers and runner compute the head from it. */
  maxLogBytes: z.int(),
  runner: z.enum(RUNNER_KINDS),
  record: agentStartRequestSchema.shape.record.unwrap().nullable(),
  /** null: started without a client. */
  attached: z.object({ stdin: z.boolean(), disconnectTimeoutMs: z.int() }).nullable().default(null),
})
export type ProcessMetadata = z.infer<typeof metadataSchema>
export type AttachedOptions = NonNullable<ProcessMetadata['attached']>

export type ProcessIdentity = { pid: number; startTime: number }
/** The content of `started`, which the command's own process writes. */
export type StartRecord = { command: ProcessIdentity; runner: ProcessIdentity }

/** The content of `exit`, which the runner writes. */
export type ExitRecord = {
  exitCode: number | null
  /**
   * Signal number. The shell runner cannot distinguish a signal from an exit code: it reports only TERM, when it received TERM
   * itself.
   */
  signal: number | null
  finishedAt: number
  /** Bytes of stdout and stderr; null for the shell runner, which does not count them. */
  sizes: { stdout: number; stderr: number } | null
  /** The runner could not write all of the output. */
  outputIncomplete: boolean
}

export type TerminationCause = 'kill' | 'timeout'

/**
 * Replaces the file atomically. Resolves when the metadata is durable; for an attached command, when it is written: such a
 * command is lost after a power loss. Rejects with the system error.
 */
export const writeMetadata = (dir: string, metadata: ProcessMetadata): Promise<void> =>
  replaceFile(join(dir, 'meta.json'), JSON.stringify(metadata), { flush: metadata.attached === null })

/** undefined when missing, or damaged by a power loss. */
export function readMetadata(dir: string): ProcessMetadata | undefined {
  try {
    return metadataSchema.parse(JSON.parse(readText(join(dir, 'meta.json')) ?? 'null'))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
}

export function readStartRecord(dir: string): StartRecord | undefined {
  const match = /^(\d+) (\d+) (\d+) (\d+)\n$/.exec(readText(join(dir, 'started')) ?? '')
  if (match === null) return undefined
  const [pid = 0, startTime = 0, runnerPid = 0, runnerStart = 0] = match.slice(1).map(Number)
  return { command: { pid, startTime }, runner: { pid: runnerPid, startTime: runnerStart } }
}

/** Blocks a runner that has not yet started the command. False when the command has started. */
export function preventStart(dir: string): boolean {
  const staging = join(dir, 'started.void')
  rmSync(staging, { recursive: true, force: true })
  writeFileSync(staging, 'void\n', { mode: 0o600, flag: 'wx' })
  try {
    linkSync(staging, join(dir, 'started'))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return readStartRecord(dir) === undefined
  } finally {
    unlinkSync(staging)
  }
}

/** undefined when missing or malformed: an exit status is never guessed. */
export function readExitRecord(dir: string): ExitRecord | undefined {
  const path = join(dir, 'exit')
  const text = readText(path)
  if (text === undefined) return undefined
  const native = /^(\d+|-) (\d+|-) (\d+) (\d+) (\d+) (complete|incomplete) *\n$/.exec(text)
  if (native !== null) {
    const [code, signal, finishedAt, stdout, stderr] = native.slice(1, 6).map(numberOrNull)
    return {
      exitCode: code ?? null,
      signal: signal ?? null,
      finishedAt: finishedAt ?? 0,
      sizes: { stdout: stdout ?? 0, stderr: stderr ?? 0 },
      outputIncomplete: native[6] === 'incomplete',
    }
  }
  const sh = /^status (\d+)( terminated)?\n$/.exec(text)
  if (sh === null) return undefined
  // File timestamps lag up to one kernel tick behind Date.now(), which the termination markers use.
  const finishedAt = Math.floor(statSync(path).mtimeMs) + TICK_MS
  return {
    exitCode: Number(sh[1]),
    signal: sh[2] === undefined ? null : constants.signals.SIGTERM,
    finishedAt,
    sizes: null,
    outputIncomplete: false,
  }
}

const TICK_MS = 10

const numberOrNull = (text: string): number | null => (text === '-' ? null : Number(text))

export const writeTerminationMarker = (
  dir: string,
  cause: TerminationCause,
  requestedAt: number,
): Promise<void> => replaceFile(join(dir, cause), `${requestedAt}\n`)

/** Returns the time of the termination request in milliseconds since the epoch. */
export function readTerminationMarker(dir: string, cause: TerminationCause): number | undefined {
  const match = /^(\d+)\n$/.exec(readText(join(dir, cause)) ?? '')
  return match === null ? undefined : Number(match[1])
}

export const writeDetachedMarker = (dir: string): void => writeStateFile(join(dir, 'detached'), '')
export const hasDetachedMarker = (dir: string): boolean => existsSync(join(dir, 'detached'))

export const writeStdinLength = (dir: string, bytes: number): void =>
  writeStateFile(join(dir, 'stdin-end'), `${bytes}\n`)
/** null before the client has sent all of its stdin. */
export function readStdinLength(dir: string): number | null {
  const match = /^(\d+)\n$/.exec(readText(join(dir, 'stdin-end')) ?? '')
  return match === null ? null : Number(match[1])
}

/** Renames before deleting, so that a crash never leaves a partly deleted directory under the process id. */
export async function removeDirectory(dir: string): Promise<void> {
  const trash = `${dir}.removing.${process.pid}.${performance.now()}`
  try {
    await rename(dir, trash)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  // The runner may still create files in the directory: retry on ENOTEMPTY.
  await rm(trash, { recursive: true, force: true, maxRetries: 5 })
}

export const isPendingRemoval = (name: string): boolean => name.includes('.removing.')

/** The metadata contains the command of a request. */
const MAX_FILE_BYTES = 2 * LIMITS.jsonBodyBytes

/** Polled often and mostly missing: existsSync is cheaper than a thrown ENOENT. */
const readText = (path: string): string | undefined =>
  existsSync(path) ? (readStateFile(path, MAX_FILE_BYTES) ?? undefined) : undefined
