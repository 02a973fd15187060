// The conversations of a box, in one file that is replaced atomically. The file has what outlives the runs; sessions,
// activity and the status come from the newest run of a conversation.
import type { Logger } from 'pino'
import * as z from 'zod'
import { CONVERSATION_ID_PATTERN, PROVIDERS } from '../../../shared/field-values.ts'
import { writeDurably } from '../../durable-file.ts'
import { readStateFile } from '../../state-file.ts'
import { unknownConversation } from '../rules.ts'
import type { RunState, Runs } from '../types.ts'

const recordSchema = z.object({
  id: z.string().regex(CONVERSATION_ID_PATTERN),
  provider: z.enum(PROVIDERS),
  /** The model of the newest run. */
  model: z.string().nullable(),
  cwd: z.string(),
  /** The last session before the newest run. */
  sessionId: z.string().nullable(),
  /** The number of runs, including deleted ones. */
  prompts: z.int().min(0),
  lastRunId: z.string().nullable(),
  createdAt: z.int(),
  updatedAt: z.int(),
})
const fileSchema = z.object({ conversations: z.array(recordSchema) })
type ConversationRecord = z.infer<typeof recordSchema>
export type NewConversation = Pick<ConversationRecord, 'id' | 'provider' | 'model' | 'cwd'>

/** Instants are milliseconds since the epoch. */
export type ConversationState = Readonly<ConversationRecord> & { readonly lastRun: RunState | null }

export type Conversations = {
  get(id: string): ConversationState | undefined
  /** Most recently active first. */
  list(): ConversationState[]
  /** Adds a conversation without runs, or records that a prompt has been accepted in an existing one. */
  add(options: NewConversation, at: number): void
  /** Adds a new run. Idempotent for the newest run. */
  attach(run: RunState): void
  remove(id: string): void
  /** Resolves when the current state is durable. Logs errors: attachMissingRuns() repairs the file after a restart. */
  save(): Promise<void>
}

/** The file has at most some thousand conversations with the longest working directory. */
const MAX_BYTES = 64 * 1024 * 1024

/** @param id undefined: all conversations @throws ApiError not_found */
export function assertConversation(conversations: Pick<Conversations, 'get'>, id: string | undefined): void {
  if (id !== undefined && conversations.get(id) === undefined) throw unknownConversation(id)
}

/** The fields of a conversation that its first prompt determines. */
export const toConversation = ({
  conversationId,
  provider,
  model,
  cwd,
}: Pick<RunState, 'conversationId' | 'provider' | 'model' | 'cwd'>): NewConversation => ({
  id: conversationId,
  provider,
  model,
  cwd,
})

/** A missing or damaged file is an empty one; the conversations of the stored runs are created again. */
export function openConversations(
  path: string,
  runs: Pick<Runs, 'get' | 'list'>,
  log: Logger,
): Conversations {
  const records = new Map(readRecords(path, log).map((record) => [record.id, record]))

  const toState = (record: ConversationRecord): ConversationState => {
    const lastRun = record.lastRunId === null ? null : (runs.get(record.lastRunId) ?? null)
    return {
      ...record,
      lastRun,
      sessionId: lastRun?.sessionId ?? record.sessionId,
      updatedAt: Math.max(record.updatedAt, lastRun?.finishedAt ?? 0),
    }
  }
  function attach(run: RunState): void {
    const { id, conversationId, model, startedAt } = run
    const record = records.get(conversationId) ?? createRecord(toConversation(run), startedAt)
    if (record.lastRunId === id) return
    records.set(conversationId, {
      ...record,
      model,
      lastRunId: id,
      prompts: record.prompts + 1,
      sessionId: toState(record).sessionId,
      updatedAt: Math.max(record.updatedAt, startedAt),
    })
  }
  /** Runs are missing when the agent was killed before it saved the file, or the file was damaged. */
  function attachMissingRuns(): void {
    const stored = Map.groupBy(runs.list().reverse(), ({ conversationId }) => conversationId)
    for (const [conversationId, oldestFirst] of stored) {
      const { lastRunId = null } = records.get(conversationId) ?? {}
      const newest = oldestFirst.findIndex(({ id }) => id === lastRunId)
      for (const run of oldestFirst.slice(newest + 1)) attach(run)
    }
  }
  attachMissingRuns()

  // Writes do not overlap. A write includes the changes until it starts.
  let lastWrite = Promise.resolve()
  let nextWrite: Promise<void> | null = null

  return {
    get(id) {
      const record = records.get(id)
      return record && toState(record)
    },
    list: () =>
      [...records.values()]
        .reverse()
        .map(toState)
        .sort((a, b) => b.updatedAt - a.updatedAt),
    add(options, at) {
      const record = records.get(options.id) ?? createRecord(options, at)
      records.set(options.id, { ...record, updatedAt: Math.max(record.updatedAt, at) })
    },
    attach,
    remove: (id) => void records.delete(id),
    save() {
      nextWrite ??= lastWrite.then(() => {
        nextWrite = null
        const content = JSON.stringify({ conversations: [...records.values()] })
        lastWrite = writeDurably(path, content).catch((err: unknown) =>
          log.error({ err, path }, 'failed to store the conversations'),
        )
        return lastWrite
      })
      return nextWrite
    },
  }
}

const createRecord = (options: NewConversation, at: number): ConversationRecord => ({
  ...options,
  sessionId: null,
  prompts: 0,
  lastRunId: null,
  createdAt: at,
  updatedAt: at,
})

function readRecords(path: string, log: Logger): ConversationRecord[] {
  try {
    const text = readStateFile(path, MAX_BYTES)
    return text === null ? [] : fileSchema.parse(JSON.parse(text)).conversations
  } catch (error) {
    log.error({ err: error, path }, 'the file of the conversations is damaged; starting without it')
    return []
  }
}
