// box conversations: lists the conversations with coding agents on a box.
import type { Command } from 'commander'
import type { Conversation } from '../../shared/api/prompts.ts'
import { PROVIDERS, RUN_STATUSES } from '../../shared/field-values.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge } from '../output/format.ts'
import { formatCommand } from '../processes/process-messages.ts'
import { loadConversations } from '../prompts/find-run.ts'

const getStatus = ({ running, lastStatus }: Conversation): string =>
  running ? 'running' : (lastStatus ?? 'queued')

const FILTERS: List<Conversation>['filters'] = {
  provider: { get: ({ provider }) => provider, values: PROVIDERS },
  status: { get: getStatus, values: ['queued', ...RUN_STATUSES] },
  model: { get: ({ model }) => model },
  prompt: { get: ({ lastPrompt }) => lastPrompt },
}

const createConversationList = (boxName: string): List<Conversation> => ({
  columns: [
    { header: 'ID', cell: ({ id }) => id },
    { header: 'PROVIDER', cell: ({ provider }) => provider },
    { header: 'MODEL', cell: ({ model }) => model ?? '-' },
    {
      header: 'STATUS',
      cell: (conversation) => {
        const status = getStatus(conversation)
        return { text: status, color: getStateColor(status) }
      },
    },
    { header: 'PROMPTS', cell: ({ prompts }) => String(prompts) },
    { header: 'QUEUED', cell: ({ queued }) => String(queued) },
    {
      header: 'ACTIVE',
      cell: ({ updatedAt }, now) => `${formatAge(updatedAt, now)} ago`,
      isRelativeTime: true,
    },
    { header: 'STARTED AT', cell: ({ createdAt }) => createdAt, isWide: true },
    { header: 'LAST RUN', cell: ({ lastRunId }) => lastRunId ?? '-', isWide: true },
    { header: 'SESSION', cell: ({ sessionId }) => sessionId ?? '-', isWide: true },
    { header: 'CWD', cell: ({ cwd }) => cwd, isWide: true },
    { header: 'LAST PROMPT', cell: ({ lastPrompt }) => formatCommand(lastPrompt) },
  ],
  getId: ({ id }) => id,
  getName: ({ id }) => id,
  filters: FILTERS,
  getEmptyMessage: (isFiltered) =>
    isFiltered
      ? `No matching conversations on ${boxName}.`
      : `No conversations on ${boxName}. Start one with \`${boxCommand()} prompt ${boxName} "…"\`.`,
})

export function addConversationsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('conversations')
      .summary('list the conversations with coding agents on a box')
      .description(
        'Lists the conversations with coding agents on a box, most recently active first. The status is that of the last run.',
      )
      .argument('<name>', "the box's name or id"),
    'the ids',
    FILTERS,
  )
    .addHelpText(
      'after',
      `
Examples:
  box conversations fig
  box conversations fig --filter provider=codex
  box prompts fig --conversation cv_8b49
  box prompt --conversation cv_8b49 fig "and now the tests"`,
    )
    .action((name: string, options: ListOptions) =>
      runAction(async ({ client, signal }) => {
        const edge = await client.createEdgeClient(name)
        const load = async () => {
          const list = await loadConversations(edge)
          return {
            rows: list.conversations,
            toJson: (conversations: readonly Conversation[]) => ({ ...list, conversations }),
          }
        }
        return printList(createConversationList(edge.boxName), load, options, signal)
      }),
    )
}
