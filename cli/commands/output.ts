// box output: prints the stored output of a command in the history.
import type { Command } from 'commander'
import type { Command as CommandRecord } from '../../shared/api/commands.ts'
import { createJsonOption, type JsonOption } from '../arguments/options.ts'
import { findBoxWithRecords } from '../connection/find-box-with-records.ts'
import type { RunAction, Session } from '../connection/session.ts'
import { writeWithBackpressure } from '../follow/write-with-backpressure.ts'
import { findRecordId, getNewestRecordId } from '../history/find-record.ts'
import { readStoredOutput } from '../history/read-stored-output.ts'
import { printJson, printMessage } from '../output/print.ts'
import { noSuchRecordMessage, replaceNotFoundMessage } from '../processes/process-messages.ts'
import { getPath } from '../processes/read-records.ts'

type Options = JsonOption & { stderr?: boolean }

export function addOutputCommand(program: Command, runAction: RunAction): void {
  program
    .command('output')
    .summary('print the output of a command in the history')
    .description(
      'Prints the stored output of a command in `box history`, byte for byte: its last 1 MiB. If the command is still ' +
        'running, continues until it exits. Works while the box is suspended.',
    )
    .argument('<name>', "the box's name or id; also of a deleted box")
    .argument('[id]', 'the id from `box history`, or its first characters (default: the newest command)')
    .option('--stderr', 'print stderr instead of stdout')
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box output fig
  box output fig p_8b49
  box output fig $ID --stderr | less
  box output fig $ID > out.bin

If the oldest output has been discarded, stderr reports how many bytes are missing. --json prints each page, in base64.`,
    )
    .action((name: string, id: string | undefined, options: Options) =>
      runAction((session) => printOutput(session, name, id, options)),
    )
}

async function printOutput(
  session: Session,
  name: string,
  typed: string | undefined,
  options: Options,
): Promise<undefined> {
  const { client, signal } = session
  const { id: boxId } = await findBoxWithRecords(client, name)
  const id =
    typed === undefined
      ? await getNewestRecordId(client, boxId, name)
      : await findRecordId(client, { boxId, boxName: name, typed })
  const { command } = await replaceNotFoundMessage(
    client.request<{ command: CommandRecord }>('GET', `${getPath(boxId)}/${encodeURIComponent(id)}`),
    noSuchRecordMessage(name, id),
  )
  const stream = options.stderr ? 'stderr' : 'stdout'
  if (!command.outputKept)
    printMessage('the output of this command was not stored: zero data retention was on.')
  for await (const page of readStoredOutput(session, { boxId, id, stream, offset: 0 })) {
    if (page.skipped > 0 && command.outputKept)
      printMessage(
        `${page.skipped} bytes of ${stream} before this point are missing: they have been discarded.`,
      )
    if (options.json) printJson(page)
    else await writeWithBackpressure(process.stdout, Buffer.from(page.data, 'base64'), signal)
  }
}
