// Finds runs and conversations by their ids or unique prefixes of their ids.
import type {
  Conversation,
  ConversationList,
  PromptList,
  QueuedPrompt,
  Run,
} from '../../shared/api/prompts.ts'
import { CONVERSATION_ID_PATTERN, RUN_ID_PATTERN } from '../../shared/field-values.ts'
import { findByPrefix } from '../arguments/unique-prefix.ts'
import { boxCommand } from '../command-name.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { sanitize } from '../output/print.ts'
import { noSuchRunMessage } from './messages.ts'

const isWholeRunId = (text: string): boolean => RUN_ID_PATTERN.test(text)
export const isWholeConversationId = (text: string): boolean => CONVERSATION_ID_PATTERN.test(text)

export const loadPrompts = (edge: EdgeClient): Promise<PromptList> =>
  edge.requestJson<PromptList>('GET', '/prompts')

export const loadConversations = (edge: EdgeClient): Promise<ConversationList> =>
  edge.requestJson<ConversationList>('GET', '/prompts/conversations')

/** Requests the list once, for the first id that is not complete. The prefix `run_` may be omitted. */
export function createRunFinder(edge: EdgeClient): (typed: string) => Promise<string> {
  let list: Promise<PromptList> | undefined
  return async (typed) => {
    if (isWholeRunId(typed)) return typed
    list ??= loadPrompts(edge)
    const { runs, queued } = await list
    const found = findByPrefix<Run | QueuedPrompt>(
      [...queued, ...runs],
      typed.startsWith('run_') ? typed : `run_${typed}`,
      { getId: ({ id }) => id, describe: ({ prompt }) => prompt, kind: `runs of ${edge.boxName}` },
    )
    if (found !== undefined) return found.id
    throw new CliError(EXIT.notFound, noSuchRunMessage(edge.boxName, typed), { code: 'not_found' })
  }
}

/** The prefix `cv_` may be omitted. @throws CliError when no conversation or several conversations match */
export function findConversation(
  conversations: readonly Conversation[],
  boxName: string,
  typed: string,
): Conversation {
  const found = findByPrefix(conversations, typed.startsWith('cv_') ? typed : `cv_${typed}`, {
    getId: ({ id }) => id,
    describe: ({ lastPrompt }) => lastPrompt,
    kind: `conversations of ${boxName}`,
  })
  if (found !== undefined) return found
  const message = `No such conversation on ${boxName}: '${sanitize(typed)}'. Run \`box conversations ${boxName}\` to list conversations.`
  throw new CliError(EXIT.notFound, message, { code: 'not_found' })
}

/** A whole id is not looked up. */
export async function findConversationId(edge: EdgeClient, typed: string): Promise<string> {
  if (isWholeConversationId(typed)) return typed
  const { conversations } = await loadConversations(edge)
  return findConversation(conversations, edge.boxName, typed).id
}

/** @throws CliError when there is no run */
export async function getNewestRun(edge: EdgeClient): Promise<Run> {
  const { active, runs } = await loadPrompts(edge)
  const run = active ?? runs[0]
  if (run !== undefined) return run
  const message = `No runs on ${edge.boxName}. Start one with \`${boxCommand()} prompt ${edge.boxName} "…"\`.`
  throw new CliError(EXIT.notFound, message, { code: 'not_found' })
}
