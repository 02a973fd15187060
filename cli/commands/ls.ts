// box ls: lists the boxes.
import type { Command } from 'commander'
import type { Account } from '../../shared/api/account.ts'
import type { Box } from '../../shared/api/boxes.ts'
import { OBSERVED_STATES } from '../../shared/field-values.ts'
import type { LabelSelector } from '../../shared/labels.ts'
import { REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
import { createLabelOption, formatLabels, hasLabels, LABEL_FILTER, toLabelQuery } from '../boxes/labels.ts'
import {
  describeProblem,
  formatStateProblem,
  loadProblems,
  type StateProblem,
} from '../boxes/state-problems.ts'
import { boxCommand } from '../command-name.ts'
import type { Client } from '../connection/client.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, getFormat, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { formatBoxState } from '../output/box-state.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge } from '../output/format.ts'

type Options = ListOptions & { all?: boolean; label?: LabelSelector[] }

type Problems = ReadonlyMap<string, StateProblem>

const createBoxList = (
  getEmptyMessage: List<Box>['getEmptyMessage'],
  getProblems: () => Problems,
): List<Box> => ({
  columns: [
    { header: 'NAME', cell: ({ hostname }) => hostname },
    {
      header: 'STATE',
      cell: (box) => ({
        text: formatStateProblem(formatBoxState(box), getProblems().get(box.id)),
        color: getStateColor(box.observedState),
      }),
    },
    { header: 'TIER', cell: ({ tier }) => tier },
    {
      header: 'ISOLATION',
      cell: ({ kind, isolation }) => (kind === 'machine' ? 'machine' : (isolation?.level ?? '-')),
    },
    { header: 'IMAGE', cell: ({ image }) => image ?? '-' },
    { header: 'AGE', cell: ({ createdAt }, now) => formatAge(createdAt, now), isRelativeTime: true },
    { header: 'NETWORK', cell: ({ isolation }) => isolation?.network ?? '-', isWide: true },
    {
      header: 'REGION',
      cell: ({ region, desiredRegion }) => (desiredRegion === null ? region : `${region} → ${desiredRegion}`),
      isWide: true,
    },
    { header: 'LIMITS', cell: ({ isolation }) => isolation?.limits.join(',') || '-', isWide: true },
    { header: 'LABELS', cell: ({ labels }) => formatLabels(labels).join(',') || '-', isWide: true },
    { header: 'DELETION', cell: ({ deleteAt }) => deleteAt ?? '-', isWide: true },
    { header: 'CREATED', cell: ({ createdAt }) => createdAt, isWide: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ hostname }) => hostname,
  filters: {
    name: { get: ({ hostname }) => hostname },
    state: { get: ({ observedState }) => observedState, values: OBSERVED_STATES },
    kind: { get: ({ kind }) => kind, values: ['managed', 'machine'] },
    tier: { get: ({ tier }) => tier, values: TIER_NAMES },
    image: { get: ({ image }) => image ?? '' },
    region: { get: ({ region }) => region, values: REGIONS },
    label: LABEL_FILTER,
  },
  getEmptyMessage,
  toRemoved: (box) => (box.observedState === 'terminated' ? null : { ...box, observedState: 'terminated' }),
})

/** @param limit the number of boxes to which the API key is limited; null: it is not */
function formatEmptyMessage(isFiltered: boolean, limit: number | null): string {
  if (isFiltered) return 'No matching boxes.'
  if (limit === null) return `No boxes. Create one with \`${boxCommand()} create\`.`
  return `No boxes: this API key is limited to ${limit === 1 ? 'a box that does' : `${limit} boxes that do`} not exist any more.`
}

async function readBoxLimit(client: Client): Promise<number | null> {
  const { key } = await client.request<Account>('GET', '/me')
  return key?.boxIds?.length ?? null
}

export function addLsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('ls')
      .alias('list')
      .summary('list the boxes')
      .description(
        'Lists the boxes, newest first. ISOLATION is the isolation level of each box; `machine` is an enrolled machine. A box without an ' +
          'IMAGE uses the programs of the machine on which it runs.',
      )
      .option('-a, --all', 'include deleted boxes')
      .addOption(createLabelOption('list only the boxes with this label')),
    'the names',
    createBoxList(
      () => '',
      () => new Map(),
    ).filters,
  )
    .addHelpText(
      'after',
      `
Examples:
  box ls
  box ls -o wide                              also id, network, limits and labels
  box ls --label team=web
  box ls --filter state=running --filter name='web-*'
  box ls -q --filter state=suspended | xargs -r box start
  box ls --watch
  box ls --json | jq '.boxes[] | {hostname, tier}'

--filter name=TEXT matches a part of the name; with * or ? it matches the whole name. Filters of different keys must all
match; of the same key, one of them. --watch redraws the table on a terminal; otherwise it prints each changed row, and with
-o json one JSON object per line.`,
    )
    .action((options: Options) =>
      runAction(({ client, signal }) => {
        let limit: number | null = null
        let problems: Problems = new Map()
        const isTable = ['table', 'wide'].includes(getFormat(options))
        const { all, label = [] } = options
        const path = `/boxes?live=${all ? 0 : 1}${toLabelQuery(label)}`
        const load = async () => {
          const response = await client.request<{ boxes: Box[] }>('GET', path)
          if (response.boxes.length === 0) limit = await readBoxLimit(client)
          const rows = response.boxes.filter((box) => hasLabels(box, label))
          if (isTable) problems = await loadProblems(client, rows)
          const lines = rows.flatMap((box) => {
            const problem = problems.get(box.id)
            return problem === undefined ? [] : [describeProblem(box, problem)]
          })
          const note = lines.length === 0 ? null : lines.join('\n')
          return { rows, note, toJson: (boxes: readonly Box[]) => ({ ...response, boxes }) }
        }
        const list = createBoxList(
          (isFiltered) => formatEmptyMessage(isFiltered || label.length > 0, limit),
          () => problems,
        )
        return printList(list, load, options, signal)
      }),
    )
}
