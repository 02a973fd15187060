// The queue of a box. Two files per prompt: `<runId>.prompt` has the exact text; `<runId>.json`, written last, the rest.
import { mkdir, readdir, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'
import type { Logger } from 'pino'
import * as z from 'zod'
import { LIMITS } from '../../../shared/limits.ts'
import { sync, writeDurably } from '../../durable-file.ts'
import { readStateFile } from '../../state-file.ts'
import { promptFieldsSchema } from '../prompt-fields.ts'

const entrySchema = promptFieldsSchema.extend({
  /** Milliseconds since the epoch. */
  queuedAt: z.int(),
  /** Determines the order of the queue. */
  sequence: z.int(),
})
const fileSchema = entrySchema.extend({
  /** The variables are only in the file, which is deleted when the run has started: the values may be secrets. */
  boxEnv: z.record(z.string(), z.string()),
})
/** The variables of a box are at most 64 KiB, each character at most a six-byte escape. */
const MAX_ENTRY_BYTES = 1024 * 1024

export type QueueEntry = Readonly<z.infer<typeof entrySchema>>
export type StoredPrompt = { prompt: string; boxEnv: Record<string, string> }

export type PromptQueue = {
  /** The entries in the order of the queue. */
  entries(): readonly QueueEntry[]
  get(id: string): QueueEntry | undefined
  /**
   * Appends a prompt at once. `stored` resolves when the entry is durable; when it rejects, the entry has been removed.
   */
  add(
    entry: Omit<QueueEntry, 'sequence'>,
    content: StoredPrompt,
  ): { entry: QueueEntry; stored: Promise<void> }
  /** Resolves when the entry is durable. Rejects as add() does. */
  waitUntilStored(id: string): Promise<void>
  /** @throws Error when the files have been deleted or damaged */
  read(id: string): Promise<StoredPrompt>
  /** Removes an entry at once, and then its files. */
  remove(id: string): Promise<void>
}

const isSystemError = (error: unknown): boolean => error instanceof Error && 'syscall' in error

/** Restores the queue. A damaged entry is deleted. */
export async function openQueue(dir: string, log: Logger): Promise<PromptQueue> {
  await mkdir(dir, { recursive: true, mode: 0o700 })
  const getEntryPath = (id: string) => join(dir, `${id}.json`)
  const getPromptPath = (id: string) => join(dir, `${id}.prompt`)
  const writes = new Map<string, Promise<void>>()

  const readFile = (path: string, maxBytes: number): string => {
    const text = readStateFile(path, maxBytes)
    if (text === null) throw new Error(`${path} has been deleted or replaced`)
    return text
  }
  const readEntry = (id: string) => {
    const entry = fileSchema.parse(JSON.parse(readFile(getEntryPath(id), MAX_ENTRY_BYTES)))
    if (entry.id !== id) throw new Error(`the file of ${id} is for another prompt`)
    return entry
  }
  async function removeFiles(id: string): Promise<void> {
    // The entry is removed first: a prompt without an entry is incomplete.
    await rm(getEntryPath(id), { recursive: true, force: true })
    await rm(getPromptPath(id), { recursive: true, force: true })
    await sync(dir)
  }

  async function restore(): Promise<QueueEntry[]> {
    const restored: QueueEntry[] = []
    const names = new Set(await readdir(dir))
    const ids = new Set([...names].map((name) => name.replace(/\..*$/, '')))
    for (const id of ids) {
      try {
        if (names.has(`${id}.json`) && names.has(`${id}.prompt`)) {
          const { boxEnv: _, ...entry } = readEntry(id)
          restored.push(entry)
          continue
        }
      } catch (err) {
        if (isSystemError(err)) {
          log.error(
            { err, runId: id },
            'failed to read a queued prompt; the next start of the agent will retry',
          )
          continue
        }
        log.error({ err, runId: id }, 'a queued prompt is damaged; it is deleted')
      }
      // The agent was killed before it accepted the prompt, or while it removed the prompt.
      for (const name of names)
        if (name.startsWith(`${id}.`)) await rm(join(dir, name), { recursive: true, force: true })
    }
    return restored.sort((a, b) => a.sequence - b.sequence)
  }
  let entries = await restore()

  async function write(entry: QueueEntry, { prompt, boxEnv }: StoredPrompt): Promise<void> {
    try {
      await writeFile(getPromptPath(entry.id), prompt, { mode: 0o600, flush: true })
      await writeDurably(getEntryPath(entry.id), JSON.stringify({ ...entry, boxEnv }))
    } catch (error) {
      entries = entries.filter(({ id }) => id !== entry.id)
      await removeFiles(entry.id).catch((err: unknown) =>
        log.error({ err, runId: entry.id }, 'failed to remove a prompt that could not be stored'),
      )
      throw error
    }
  }

  return {
    entries: () => entries,
    get: (id) => entries.find((entry) => entry.id === id),
    add(fields, content) {
      const entry = { ...fields, sequence: (entries.at(-1)?.sequence ?? 0) + 1 }
      entries = [...entries, entry]
      const stored = write(entry, content).finally(() => writes.delete(entry.id))
      writes.set(entry.id, stored)
      return { entry, stored }
    },
    waitUntilStored: (id) => writes.get(id) ?? Promise.resolve(),
    async read(id) {
      const { boxEnv } = readEntry(id)
      return { prompt: readFile(getPromptPath(id), LIMITS.promptBytes), boxEnv }
    },
    async remove(id) {
      entries = entries.filter((entry) => entry.id !== id)
      // A failed write has removed the files.
      await writes.get(id)?.catch(() => undefined)
      await removeFiles(id)
    },
  }
}
