// What is on the disk of one detached process: who it is, that it began, what was asked of it and how it ended.
//
//   meta.json     written before anything runs
//   started       linked into place by the command's process just before it becomes the command (native/run.c)
//   kill, timeout   when DELETE /exec or its time limit began to end it, written before the first signal
//   exit          renamed into place by the runner
//   stdout, stderr, and changes: where the runner tells of writes to them (changes.ts)
import { existsSync, linkSync, readFileSync, statSync, unlinkSync, writeFileSync } from 'node:fs'
import { rename, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import { z } from 'zod'
import { agentStartRequest } from '../../../shared/api/processes.ts'
import { RUNNER_KINDS } from './runner.ts'

const meta = z.object({
  processId: agentStartRequest.shape.processId,
  /** Of what was asked for, so that an id cannot come to mean something else. */
  digest: z.string(),
  command: z.string(),
  /** The one sent, or ~. */
  cwd: z.string(),
  startedAt: z.int(),
  /** Milliseconds since the epoch. */
  deadline: z.int().nullable(),
  bootId: z.string(),
  /** The bound of each log, in force for this process for good: readers and runner reckon with the same. */
  keepBytes: z.int(),
  runner: z.enum(RUNNER_KINDS),
  record: agentStartRequest.shape.record.unwrap().nullable(),
})
export type Meta = z.infer<typeof meta>

export type Identity = { pid: number; startTime: number }
export type Started = { command: Identity; runner: Identity }

/** As the runner told it. */
export type Exit = {
  exitCode: number | null
  /** A number. null also when the runner cannot tell a signal from an exit code. */
  signal: number | null
  finishedAt: number
  /** Bytes of stdout and stderr; null when the runner does not know. */
  sizes: { stdout: number; stderr: number } | null
  /** Not all of the output could be written. */
  cut: boolean
}

export type Mark = 'kill' | 'timeout'

/** Whole and on the disk when it resolves. Rejects with the system's error. */
export async function writeMeta(folder: string, value: Meta): Promise<void> {
  const staging = join(folder, 'meta.json.new')
  await writeFile(staging, JSON.stringify(value), { mode: 0o600, flush: true })
  await rename(staging, join(folder, 'meta.json'))
}

/** undefined when there is none, or when it is damaged (after a power cut). */
export function readMeta(folder: string): Meta | undefined {
  try {
    return meta.parse(JSON.parse(readText(join(folder, 'meta.json')) ?? 'null'))
  } catch (error) {
    if (error instanceof SyntaxError || error instanceof z.ZodError) return undefined
    throw error
  }
}

export function readStarted(folder: string): Started | undefined {
  const found = /^(\d+) (\d+) (\d+) (\d+)\n$/.exec(readText(join(folder, 'started')) ?? '')
  if (found === null) return undefined
  const [pid = 0, startTime = 0, runnerPid = 0, runnerStart = 0] = found.slice(1).map(Number)
  return { command: { pid, startTime }, runner: { pid: runnerPid, startTime: runnerStart } }
}

/** Makes sure that no runner that may still be on its way starts the command. False: one has. */
export function preventStart(folder: string): boolean {
  const staging = join(folder, 'started.void')
  writeFileSync(staging, 'void\n', { mode: 0o600 })
  try {
    linkSync(staging, join(folder, 'started'))
    return true
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    return readStarted(folder) === undefined
  } finally {
    unlinkSync(staging)
  }
}

/** undefined when there is none; so is one that makes no sense, as the end of a process is never guessed. */
export function readExit(folder: string): Exit | undefined {
  const path = join(folder, 'exit')
  const text = readText(path)
  if (text === undefined) return undefined
  const native = /^(\d+|-) (\d+|-) (\d+) (\d+) (\d+) (whole|cut) *\n$/.exec(text)
  if (native !== null) {
    const [code, signal, finishedAt, stdout, stderr] = native.slice(1, 6).map(numberOrNull)
    return {
      exitCode: code ?? null,
      signal: signal ?? null,
      finishedAt: finishedAt ?? 0,
      sizes: { stdout: stdout ?? 0, stderr: stderr ?? 0 },
      cut: native[6] === 'cut',
    }
  }
  const sh = /^status (\d+)\n$/.exec(text)
  if (sh === null) return undefined
  // The clock of file times is up to a tick behind the one that the marks are made by.
  const finishedAt = Math.floor(statSync(path).mtimeMs) + TICK_MS
  return { exitCode: Number(sh[1]), signal: null, finishedAt, sizes: null, cut: false }
}

const TICK_MS = 10

const numberOrNull = (text: string): number | null => (text === '-' ? null : Number(text))

export async function writeMark(folder: string, mark: Mark, at: number): Promise<void> {
  const staging = join(folder, `${mark}.new`)
  await writeFile(staging, `${at}\n`, { mode: 0o600 })
  await rename(staging, join(folder, mark))
}

/** When it was made, in milliseconds since the epoch. */
export function readMark(folder: string, mark: Mark): number | undefined {
  const found = /^(\d+)\n$/.exec(readText(join(folder, mark)) ?? '')
  return found === null ? undefined : Number(found[1])
}

/** Out of sight at once, gone soon after: a folder of this name never comes back half empty. */
export async function removeFolder(folder: string): Promise<void> {
  const trash = `${folder}.gone.${process.pid}.${performance.now()}`
  try {
    await rename(folder, trash)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return
    throw error
  }
  // Its runner may just be writing its last there: then it is not empty yet, and is tried again.
  await rm(trash, { recursive: true, force: true, maxRetries: 5 })
}

export const isTrash = (name: string): boolean => name.includes('.gone.')

function readText(path: string): string | undefined {
  // Most of what is asked for again and again is not there, and an error costs more than the question.
  if (!existsSync(path)) return undefined
  try {
    return readFileSync(path, 'utf8')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}
