// box usage: lists what the boxes of the workspace have cost in a month.
import { type Command, Option } from 'commander'
import type { UsageGroup } from '../../shared/api/usage.ts'
import { MONTH_PATTERN, USAGE_GROUPS } from '../../shared/field-values.ts'
import { createUsageList, loadUsage, USAGE_FILTERS } from '../billing/usage-list.ts'
import type { RunAction } from '../connection/session.ts'
import { addListOptions, getFormat, type ListOptions } from '../lists/options.ts'
import { printList } from '../lists/print-list.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'

type UsageOptions = ListOptions & { by: UsageGroup; month?: string }

function parseMonth(text: string): string {
  if (MONTH_PATTERN.test(text)) return text
  throw new CliError(EXIT.usage, '--month must be a month, such as 2030-01.')
}

export function addUsageCommand(program: Command, runAction: RunAction): void {
  addListOptions(
    program
      .command('usage')
      .summary('show what the boxes have cost in a month')
      .description(
        'Shows what the boxes of the workspace have cost in a month, with their snapshots. RUNNING is the time in which boxes ' +
          'were running. Months and days are those of UTC. A contractor sees their own boxes.',
      )
      .addOption(new Option('--by <group>', 'what each row is about').choices(USAGE_GROUPS).default('box'))
      .option('--month <month>', 'such as 2030-01; default: the current month', parseMonth),
    'the names or days',
    USAGE_FILTERS,
  )
    .addHelpText(
      'after',
      `
Examples:
  box usage
  box usage --by member --month 2030-01
  box usage --by day --json | jq -r '.rows[] | [.day, .micros / 1e6] | @csv'`,
    )
    .action((options: UsageOptions) =>
      runAction(({ client, signal }) => {
        const { by, month } = options
        const hasNote = ['table', 'wide'].includes(getFormat(options))
        const load = () => loadUsage(client, { by, month, hasNote })
        return printList(createUsageList(by), load, options, signal)
      }),
    )
}
