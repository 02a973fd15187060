// box output: what a recorded command printed.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Command } from 'commander'
import type { CommandOutput, Command as CommandRecord } from '../../shared/api/commands.ts'
import { EXIT, Failure } from '../exit-codes.ts'
import { write } from '../follow/write.ts'
import { type JsonOption, jsonOption } from '../options.ts'
import { printJson, say } from '../output.ts'
import { noRecord, orNone } from '../process-words.ts'
import type { Run, Session } from '../session.ts'

type Options = JsonOption & { stderr?: boolean }

/** Milliseconds between looks at a command that runs. */
const FIRST_PAUSE_MS = 200
const LONGEST_PAUSE_MS = 2000
/** A coordinator that restarts is away for a moment. */
const AWAY_MS = 30_000

export function addOutput(program: Command, run: Run): void {
  program
    .command('output')
    .summary('show what a recorded command printed')
    .description(
      'Prints the output of a command in `box history`, byte for byte: the last 1 MiB that is kept of it. Of one that ' +
        'still runs it goes on to the end. The box may be suspended.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<id>', 'as `box history` shows it')
    .option('--stderr', 'its stderr in place of its stdout')
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box output fig p_0123456789abcdef01234567
  box output fig $ID --stderr | less
  box output fig $ID > out.bin

When the beginning is no longer kept, stderr says how much is missing. --json prints each page, in base64.`,
    )
    .action((name: string, id: string, options: Options) =>
      run((session) => orNone(output(session, name, id, options), noRecord(name, id))),
    )
}

async function output(session: Session, name: string, id: string, options: Options): Promise<undefined> {
  const { client, signal } = session
  const box = await client.findBox(name)
  const path = `/boxes/${box.id}/commands/${encodeURIComponent(id)}`
  const { command } = await client.control<{ command: CommandRecord }>('GET', path)
  const stream = options.stderr ? 'stderr' : 'stdout'
  if (!command.outputKept)
    say('box: the output of this command was not kept: the coordinator ran with zero data retention.')
  for (let offset = 0, pause = FIRST_PAUSE_MS; ; ) {
    const query = new URLSearchParams({ stream, encoding: 'base64', offset: String(offset) })
    const page = await patiently(session, () =>
      client.control<CommandOutput>('GET', `${path}/output?${query}`),
    )
    if (page.skipped > 0 && command.outputKept)
      say(`box: ${page.skipped} bytes of ${stream} before this are missing: they are no longer kept.`)
    if (options.json) printJson(page)
    else await write(process.stdout, Buffer.from(page.data, 'base64'), signal)
    if (page.done) return
    pause = page.nextOffset > offset ? FIRST_PAUSE_MS : Math.min(pause * 1.5, LONGEST_PAUSE_MS)
    const more = page.nextOffset > offset && page.nextOffset < page.size
    offset = page.nextOffset
    if (!more) await sleep(pause, undefined, { signal })
  }
}

/** Asks again while nobody answers, for a while. */
async function patiently<T>({ signal }: Session, ask: () => Promise<T>): Promise<T> {
  const since = performance.now()
  for (;;) {
    try {
      return await ask()
    } catch (error) {
      const away = error instanceof Failure && error.exitCode === EXIT.unreachable
      if (!away || performance.now() - since > AWAY_MS) throw error
      await sleep(Math.random() * LONGEST_PAUSE_MS, undefined, { signal })
    }
  }
}
