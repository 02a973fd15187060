// box ls: lists the boxes.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { formatAge, formatTable, print, printJson, printStderr } from '../output.ts'
import type { RunAction } from '../session.ts'

type Options = JsonOption & { all?: boolean }

export function addLsCommand(program: Command, runAction: RunAction): void {
  program
    .command('ls')
    .alias('list')
    .summary('list the boxes')
    .description(
      'Lists the boxes, newest first. ISOLATION is the isolation level of each box. NETWORK is own, or host for a box that shares the network of its host.',
    )
    .option('-a, --all', 'include deleted boxes')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box ls
  box ls --json | jq -r '.boxes[] | select(.observedState == "running") | .hostname'`,
    )
    .action((options: Options) =>
      runAction(async ({ client }) => {
        const path = options.all ? '/boxes' : '/boxes?live=1'
        const response = await client.request<{ boxes: Box[] }>('GET', path)
        if (options.json) printJson(response)
        else if (response.boxes.length > 0) print(formatBoxes(response.boxes, Date.now()))
        else printStderr('No boxes. Create one with `box create`.')
        return undefined
      }),
    )
}

const TABLE_HEADER = ['NAME', 'STATE', 'ISOLATION', 'NETWORK', 'TIER', 'REGION', 'AGE']

const formatBoxes = (boxes: readonly Box[], now: number): string =>
  formatTable([
    TABLE_HEADER,
    ...boxes.map((box) => [
      box.hostname,
      box.observedState,
      box.isolation?.level ?? '-',
      box.isolation?.network ?? '-',
      box.tier,
      box.region,
      formatAge(box.createdAt, now),
    ]),
  ])
