// How sessions have exited, after their output and screen have been forgotten: a client that could not connect for longer, because
// the coordinator was stopped for example, still gets the exit. Kept as long as the records of detached processes, also for the
// next agent.
import { mkdir } from 'node:fs/promises'
import { dirname } from 'node:path'
import type { Logger } from 'pino'
import * as z from 'zod'
import type { Clock } from '../../shared/clock.ts'
import type { AttachSocket } from '../attach/attach-socket.ts'
import { replaceFile } from '../durable-file.ts'
import { DEFAULT_RETENTION } from '../exec/detached/retention.ts'
import { readStateFile } from '../state-file.ts'
import { type AttachOptions, createClient } from './client.ts'
import { createInputQueue } from './input-queue.ts'

/** Of one record. A session of one user has one to three clients at a time. */
const MAX_RECORDED_CLIENTS = 8
const MAX_FILE_BYTES = 8 * 1024 * 1024

const recordSchema = z.object({
  name: z.string(),
  startedAt: z.number(),
  storedAt: z.number(),
  exit: z.object({ exitCode: z.int().nullable(), signal: z.string().nullable() }),
  /** Offset after the last byte of output. */
  stdoutOffset: z.int(),
  cols: z.int(),
  rows: z.int(),
  hadClient: z.boolean(),
  /** Ids, and the bytes of input that the terminal has accepted from each. The newest is the last one. */
  clients: z.array(z.tuple([z.string(), z.int()])),
})
type ExitRecord = z.infer<typeof recordSchema>
export type SessionExit = Omit<ExitRecord, 'storedAt'>

/** What a client can use of a session that has exited. */
export type ExitedTerminal = {
  readonly name: string
  hadClient(id?: string): boolean
  attach(socket: AttachSocket, options: AttachOptions): void
}

export type ExitRecords = {
  add(exit: SessionExit): void
  /** The newest session of the name that had the client; without one, the newest that had no client. */
  find(name: string, client: string | undefined): ExitedTerminal | undefined
  /** Whether a session of the name has exited. */
  has(name: string): boolean
  /** Resolves when the records are on disk. */
  close(): Promise<void>
}

export type ExitRecordsOptions = {
  /** null: the records end with the agent. */
  file: string | null
  clock: Clock
  log: Logger
}

export function createExitRecords({ file, clock, log }: ExitRecordsOptions): ExitRecords {
  /** Oldest first. */
  let records = file === null ? [] : readRecords(file)
  let writing = Promise.resolve()
  let isOutdated = false

  function prune(): void {
    const oldest = clock.now() - DEFAULT_RETENTION.ageMs
    records = records.filter(({ storedAt }) => storedAt >= oldest).slice(-DEFAULT_RETENTION.count)
  }

  async function write(path: string): Promise<void> {
    isOutdated = false
    try {
      await mkdir(dirname(path), { recursive: true, mode: 0o700 })
      await replaceFile(path, JSON.stringify(records))
    } catch (err) {
      log.warn({ err }, 'failed to store how a terminal session has exited; the next agent does not know it')
    }
  }

  function schedule(): void {
    if (file === null || isOutdated) return
    isOutdated = true
    writing = writing.then(() => write(file))
  }

  return {
    add(exit) {
      records = records.filter(({ name, startedAt }) => name !== exit.name || startedAt !== exit.startedAt)
      records.push({ ...exit, clients: exit.clients.slice(-MAX_RECORDED_CLIENTS), storedAt: clock.now() })
      prune()
      schedule()
    },
    find(name, client) {
      prune()
      const knows = ({ clients }: ExitRecord) => clients.some(([id]) => id === client)
      const ofName = records.filter((record) => record.name === name)
      const found = ofName.findLast(knows) ?? ofName.findLast(({ hadClient }) => !hadClient)
      return found && openRecord(found)
    },
    has: (name) => records.some((record) => record.name === name),
    close: () => writing,
  }
}

function readRecords(file: string): ExitRecord[] {
  try {
    const text = readStateFile(file, MAX_FILE_BYTES)
    return text === null ? [] : z.array(recordSchema).parse(JSON.parse(text))
  } catch {
    // The user of the box can change the file.
    return []
  }
}

const FORGOTTEN = 'The program has exited. Its last output is not kept any more.\r\n'

function openRecord(record: ExitRecord): ExitedTerminal {
  const { name, clients, exit, stdoutOffset, cols, rows } = record
  const input = createInputQueue(async () => undefined, new Map(clients))
  return {
    name,
    hadClient: (id) => (id === undefined ? record.hadClient : input.knows(id)),
    attach(socket, options) {
      const stdin = input.open(options.client)
      createClient(socket, options, {
        name,
        start: () => stdoutOffset,
        end: () => stdoutOffset,
        read: () => Buffer.alloc(0),
        size: () => ({ cols, rows }),
        exit: () => exit,
        snapshot: () => ({ bytes: Buffer.from(FORGOTTEN), offset: stdoutOffset, cols, rows }),
        stdin,
        resize: () => undefined,
        onInput: () => undefined,
        onAcknowledge: () => undefined,
      })
      record.hadClient = true
      socket.signal.addEventListener('abort', () => stdin.close(), { once: true })
    },
  }
}
