// box logs: prints the output of a detached process; with -f until the process exits.
import type { Command } from 'commander'
import type { Offsets } from '../../shared/api/processes.ts'
import { EXIT } from '../exit-codes.ts'
import { createMissingOutputReporter } from '../follow/missing-output.ts'
import type { OutputChunk } from '../follow/read-output.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'
import { createIntegerParser, type JsonOption } from '../options.ts'
import { printMessage } from '../output.ts'
import { noSuchProcessMessage, replaceNotFoundMessage, toExitCode } from '../process-messages.ts'
import type { RunAction, Session } from '../session.ts'

type Options = JsonOption & { follow?: boolean; tail?: number }

export function addLogsCommand(program: Command, runAction: RunAction): void {
  program
    .command('logs')
    .summary('print the output of a detached process')
    .description(
      'Prints the output of a process that `box exec -d` started, byte for byte: its stdout to stdout, its stderr to ' +
        'stderr. With -f it continues until the process exits, and reconnects when needed.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<id>', 'the id from `box exec -d` or `box ps`')
    .option('-f, --follow', 'follow the output until the process exits, and exit with its code')
    .option(
      '--tail <bytes>',
      'start with the last <bytes> bytes (not lines) of each stream',
      createIntegerParser('--tail', { min: 0, max: 999_999_999 }),
    )
    .option('--json', 'print one JSON object per line, with the bytes in base64')
    .addHelpText(
      'after',
      `
Examples:
  box logs fig p_0123456789abcdef01234567
  box logs -f fig $(box exec -d fig -- make world)
  box logs -f --tail 0 fig $ID               only new output
  box logs fig $ID 2>/dev/null | sha256sum

-f reconnects automatically if a connection or the coordinator fails; no byte is lost or repeated. stderr reports a long
outage, and how many bytes are missing if the box has discarded the oldest output. Ctrl-C only stops following: the
process keeps running.

Exit codes with -f:
  the command's own, or 128 + n if signal n killed it
  125  the exit status is unknown (the process is lost), or box logs itself failed
  130  Ctrl-C`,
    )
    .action((name: string, id: string, options: Options) =>
      runAction((session) =>
        replaceNotFoundMessage(printLogs(session, name, id, options), noSuchProcessMessage(name, id)),
      ),
    )
}

async function printLogs(session: Session, name: string, id: string, options: Options): Promise<number> {
  // Imported here: the other commands do not need it, and it would slow their start.
  const { getOutputSize, readOutput } = await import('../follow/read-output.ts')
  const { signal } = session
  const { json = false, follow = false, tail } = options
  const connection = {
    edge: await session.client.createEdgeClient(name),
    processId: id,
    signal,
    onOutage: (reason: string) =>
      printMessage(`disconnected from the process. ${reason} Reconnecting; press Ctrl-C to stop.`),
    onReconnect: () => printMessage('reconnected; the output continues where it stopped.'),
  }
  const size = !follow || tail !== undefined ? await getOutputSize(connection) : null
  const missingOutputReporter = createMissingOutputReporter(name, printMessage)
  const onAbort = () =>
    printMessage(`detached; the process is still running. Reattach with: box logs -f ${name} ${id}`)
  try {
    const exit = await readOutput({
      ...connection,
      from: size !== null && tail !== undefined ? getTailStart(size, tail) : { stdout: 0, stderr: 0 },
      ...(!follow && size !== null && { until: size }),
      onAttached: () => signal.addEventListener('abort', onAbort),
      onChunk: (chunk) => printChunk(chunk, json, signal),
      onMissing: missingOutputReporter.report,
    })
    if (json && exit !== null)
      await writeWithBackpressure(process.stdout, `${JSON.stringify({ event: 'exit', ...exit })}\n`, signal)
    return follow && exit !== null ? toExitCode(exit) : EXIT.ok
  } finally {
    missingOutputReporter.flush()
    signal.removeEventListener('abort', onAbort)
  }
}

const getTailStart = ({ stdout, stderr }: Offsets, tail: number): Offsets => ({
  stdout: Math.max(0, stdout - tail),
  stderr: Math.max(0, stderr - tail),
})

function printChunk(
  { stream, bytes, offset }: OutputChunk,
  json: boolean,
  signal: AbortSignal,
): Promise<void> {
  if (!json) return writeWithBackpressure(process[stream], bytes, signal)
  const data = bytes.toString('base64')
  const event = { event: stream, data, offset, nextOffset: offset + bytes.length }
  return writeWithBackpressure(process.stdout, `${JSON.stringify(event)}\n`, signal)
}
