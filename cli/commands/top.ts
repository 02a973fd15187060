// box top: shows the processes of a box with their CPU and memory usage.
import { setTimeout as sleep } from 'node:timers/promises'
import { type Command, Option } from 'commander'
import type { LiveProcesses } from '../../shared/api/live-processes.ts'
import { createIntegerParser, createJsonOption, type JsonOption } from '../arguments/options.ts'
import type { Client } from '../connection/client.ts'
import { noSuchBoxError } from '../connection/find-box.ts'
import type { RunAction } from '../connection/session.ts'
import { explainNotFound } from '../follow/deleted-box.ts'
import { EXIT } from '../output/exit-codes.ts'
import { formatJson, print, printJson } from '../output/print.ts'
import { createIdFinder } from '../processes/find-process.ts'
import { formatText, SORT_KEYS, type SortKey, type TopSample } from '../top/format-top.ts'

type Options = JsonOption & { count?: number; sort: SortKey }

const COUNT_RANGE = { min: 1, max: 999_999_999 }

export function addTopCommand(program: Command, runAction: RunAction): void {
  program
    .command('top')
    .summary('show the processes of a box, as top does')
    .description(
      'Shows the processes of a running box with their CPU and memory usage, every two seconds, until q, Esc or Ctrl-C. ' +
        'Without a terminal the processes are printed once.',
    )
    .argument('<name>', "the box's name or id")
    .argument('[id]', 'the id of a detached process: show only it and the processes that it started')
    .addOption(new Option('-s, --sort <key>', 'the first order').choices(SORT_KEYS).default('cpu'))
    .option(
      '-n, --count <count>',
      'print this number of times as text, then exit',
      createIntegerParser('-n', COUNT_RANGE),
    )
    .addOption(createJsonOption('print the response of the API'))
    .addHelpText(
      'after',
      `
Keys:
  c, m, p       sort by CPU usage, memory or pid
  q, Esc        quit

Examples:
  box top fig
  box top fig p_8c1b                    one detached process, with its child processes
  box top fig -n 1 --sort memory
  box top fig --json | jq '.processes[] | select(.cpuPct > 50)'

%CPU is the usage of one CPU; the line above the table has the usage of the whole box. ID is the start of the id of the
command that started the process, for box kill and box logs. With -n, --json prints one line each time.`,
    )
    .action((name: string, id: string | undefined, options: Options) =>
      runAction(async ({ client, signal }) => {
        const { count, json, sort } = options
        const isScreen = process.stdin.isTTY && process.stdout.isTTY && process.env.TERM !== 'dumb'
        if (!isScreen || json || count !== undefined)
          return printSamples(await createLoader(client, name, id), options, signal)
        const { runTop } = await import('../top/run-top.ts')
        return runTop((topSignal) => createLoader(client.withSignal(topSignal), name, id), { signal, sort })
      }),
    )
}

/** @throws CliError when there is no such box. The returned function also throws when it was deleted or suspended. */
async function createLoader(
  client: Client,
  name: string,
  typedId: string | undefined,
): Promise<() => Promise<TopSample>> {
  const edge = await client.createEdgeClient(name)
  const { boxId, boxName } = edge
  if (boxId === null) throw edge.noSuchBox ?? noSuchBoxError(name)
  const processId = typedId === undefined ? null : await createIdFinder(edge)(typedId)
  const route = processId === null ? '/processes' : `/processes?${new URLSearchParams({ processId })}`
  return async () => {
    try {
      const [live, detail] = await Promise.all([
        edge.requestJson<LiveProcesses>('GET', route),
        client.getBoxDetail(boxId),
      ])
      return { live, detail }
    } catch (error) {
      throw await explainNotFound(error, client, { boxId, boxName })
    }
  }
}

async function printSamples(
  load: () => Promise<TopSample>,
  { json, sort, count }: Options,
  signal: AbortSignal,
): Promise<number> {
  for (let printed = 0; ; ) {
    const sample = await load()
    if (json && count === undefined) printJson(sample.live)
    else if (json) print(formatJson(sample.live))
    else print(`${printed > 0 ? '\n' : ''}${formatText(sample, sort)}`)
    printed += 1
    if (printed >= (count ?? 1)) return EXIT.ok
    const { INTERVAL_MS } = await import('../top/run-top.ts')
    await sleep(INTERVAL_MS, undefined, { signal })
  }
}
