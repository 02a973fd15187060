// box output: prints the stored output of a command in the history.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { CommandOutput, Command as CommandRecord } from '../../shared/api/commands.ts'
import { CliError, EXIT } from '../exit-codes.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'
import { createJsonOption, type JsonOption } from '../options.ts'
import { printJson, printMessage } from '../output.ts'
import { noSuchRecordMessage, replaceNotFoundMessage } from '../process-messages.ts'
import type { RunAction, Session } from '../session.ts'

type Options = JsonOption & { stderr?: boolean }

/** How often new output of a running command is requested. */
const MIN_POLL_INTERVAL_MS = 200
const MAX_POLL_INTERVAL_MS = 2000
/** Tolerates a coordinator restart. */
const UNREACHABLE_GRACE_MS = 30_000

export function addOutputCommand(program: Command, runAction: RunAction): void {
  program
    .command('output')
    .summary('print the output of a command in the history')
    .description(
      'Prints the stored output of a command in `box history`, byte for byte: its last 1 MiB. If the command is still ' +
        'running, continues until it exits. Works while the box is suspended.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<id>', 'the id from `box history`')
    .option('--stderr', 'print stderr instead of stdout')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box output fig p_0123456789abcdef01234567
  box output fig $ID --stderr | less
  box output fig $ID > out.bin

If the oldest output has been discarded, stderr reports how many bytes are missing. --json prints each page, in base64.`,
    )
    .action((name: string, id: string, options: Options) =>
      runAction((session) =>
        replaceNotFoundMessage(printOutput(session, name, id, options), noSuchRecordMessage(name, id)),
      ),
    )
}

async function printOutput(session: Session, name: string, id: string, options: Options): Promise<undefined> {
  const { client, signal } = session
  const box = await client.findBox(name)
  const path = `/boxes/${box.id}/commands/${encodeURIComponent(id)}`
  const { command } = await client.request<{ command: CommandRecord }>('GET', path)
  const stream = options.stderr ? 'stderr' : 'stdout'
  if (!command.outputKept)
    printMessage('the output of this command was not stored: zero data retention was on.')
  for (let offset = 0, interval = MIN_POLL_INTERVAL_MS; ; ) {
    const query = new URLSearchParams({ stream, encoding: 'base64', offset: String(offset) })
    const page = await retryIfUnreachable(session, () =>
      client.request<CommandOutput>('GET', `${path}/output?${query}`),
    )
    if (page.skipped > 0 && command.outputKept)
      printMessage(
        `${page.skipped} bytes of ${stream} before this point are missing: they have been discarded.`,
      )
    if (options.json) printJson(page)
    else await writeWithBackpressure(process.stdout, Buffer.from(page.data, 'base64'), signal)
    if (page.done) return
    const hasNewBytes = page.nextOffset > offset
    interval = hasNewBytes ? MIN_POLL_INTERVAL_MS : Math.min(interval * 1.5, MAX_POLL_INTERVAL_MS)
    offset = page.nextOffset
    // Request the next stored page immediately.
    if (!hasNewBytes || page.nextOffset >= page.size) await sleep(interval, undefined, { signal })
  }
}

async function retryIfUnreachable<T>({ signal }: Session, request: () => Promise<T>): Promise<T> {
  const startedAt = performance.now()
  for (;;) {
    try {
      return await request()
    } catch (error) {
      const isUnreachable = error instanceof CliError && error.exitCode === EXIT.unreachable
      if (!isUnreachable || performance.now() - startedAt > UNREACHABLE_GRACE_MS) throw error
      await sleep(Math.random() * MAX_POLL_INTERVAL_MS, undefined, { signal })
    }
  }
}
