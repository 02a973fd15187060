// box ls: the boxes there are.
import type { Command } from 'commander'
import type { Box } from '../../shared/api/boxes.ts'
import { type JsonOption, jsonOption } from '../options.ts'
import { age, print, printJson, say, table } from '../output.ts'
import type { Run } from '../session.ts'

type Options = JsonOption & { all?: boolean }

export function addLs(program: Command, run: Run): void {
  program
    .command('ls')
    .alias('list')
    .summary('list the boxes')
    .description('Lists the boxes, newest first. ISOLATION is what separates a box from its host.')
    .option('-a, --all', 'deleted ones too')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box ls
  box ls --json | jq -r '.boxes[] | select(.observedState == "running") | .hostname'`,
    )
    .action((options: Options) =>
      run(async ({ client }) => {
        const answer = await client.control<{ boxes: Box[] }>('GET', options.all ? '/boxes' : '/boxes?live=1')
        if (options.json) printJson(answer)
        else if (answer.boxes.length > 0) print(listing(answer.boxes, Date.now()))
        else say('There is no box. `box create` makes one.')
        return undefined
      }),
    )
}

const HEAD = ['NAME', 'STATE', 'ISOLATION', 'TIER', 'REGION', 'AGE']

const listing = (boxes: readonly Box[], now: number): string =>
  table([
    HEAD,
    ...boxes.map((box) => [
      box.hostname,
      box.observedState,
      box.isolation?.level ?? '-',
      box.tier,
      box.region,
      age(box.createdAt, now),
    ]),
  ])
