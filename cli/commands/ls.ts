// box ls: lists the boxes.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import { OBSERVED_STATES } from '../../shared/field-values.ts'
import { REGIONS, TIER_NAMES } from '../../shared/tiers.ts'
import { formatBoxState } from '../boxes/box-state.ts'
import { boxCommand } from '../command-name.ts'
import type { RunAction } from '../connection/session.ts'
import type { List } from '../lists/list.ts'
import { addListOptions, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { getStateColor } from '../output/colors.ts'
import { formatAge } from '../output/format.ts'

type Options = ListOptions & { all?: boolean }

const BOXES: List<Box> = {
  columns: [
    { header: 'NAME', cell: ({ hostname }) => hostname },
    {
      header: 'STATE',
      cell: (box) => ({ text: formatBoxState(box), color: getStateColor(box.observedState) }),
    },
    { header: 'TIER', cell: ({ tier }) => tier },
    {
      header: 'ISOLATION',
      cell: ({ kind, isolation }) => (kind === 'machine' ? 'machine' : (isolation?.level ?? '-')),
    },
    { header: 'AGE', cell: ({ createdAt }, now) => formatAge(createdAt, now), isRelativeTime: true },
    { header: 'NETWORK', cell: ({ isolation }) => isolation?.network ?? '-', isWide: true },
    {
      header: 'REGION',
      cell: ({ region, desiredRegion }) => (desiredRegion === null ? region : `${region} → ${desiredRegion}`),
      isWide: true,
    },
    { header: 'LIMITS', cell: ({ isolation }) => isolation?.limits.join(',') || '-', isWide: true },
    { header: 'CREATED', cell: ({ createdAt }) => createdAt, isWide: true },
    { header: 'ID', cell: ({ id }) => id, isWide: true },
  ],
  getId: ({ id }) => id,
  getName: ({ hostname }) => hostname,
  filters: {
    name: { get: ({ hostname }) => hostname },
    state: { get: ({ observedState }) => observedState, values: OBSERVED_STATES },
    // A coordinator of an older version sends no kind.
    kind: { get: ({ kind }) => kind ?? 'managed', values: ['managed', 'machine'] },
    tier: { get: ({ tier }) => tier, values: TIER_NAMES },
    region: { get: ({ region }) => region, values: REGIONS },
  },
  getEmptyMessage: (isFiltered) =>
    isFiltered ? 'No matching boxes.' : `No boxes. Create one with \`${boxCommand()} create\`.`,
  toRemoved: (box) => (box.observedState === 'terminated' ? null : { ...box, observedState: 'terminated' }),
}

export function addLsCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('ls')
      .alias('list')
      .summary('list the boxes')
      .description(
        'Lists the boxes, newest first. ISOLATION is the isolation level of each box; `machine` is an enrolled machine.',
      )
      .option('-a, --all', 'include deleted boxes'),
    'the names',
    BOXES.filters,
  )
    .addHelpText(
      'after',
      `
Examples:
  box ls
  box ls -o wide                              also id, network and enforced limits
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
        const path = options.all ? '/boxes' : '/boxes?live=1'
        const load = async () => {
          const response = await client.request<{ boxes: Box[] }>('GET', path)
          return { rows: response.boxes, toJson: (boxes: readonly Box[]) => ({ ...response, boxes }) }
        }
        return printList(BOXES, load, options, signal)
      }),
    )
}
