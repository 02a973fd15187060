// box logs: what a detached process printed, and what it prints.
import type { Command } from 'commander'
import type { Offsets } from '../../shared/api/processes.ts'
import { commandExit, EXIT, Failure } from '../exit-codes.ts'
import { lostWords } from '../follow/lost-words.ts'
import type { Chunk, Exit } from '../follow/output.ts'
import { write } from '../follow/write.ts'
import { type JsonOption, wholeNumber } from '../options.ts'
import { say } from '../output.ts'
import { noProcess, orNone } from '../process-words.ts'
import type { Run, Session } from '../session.ts'

type Options = JsonOption & { follow?: boolean; tail?: number }

export function addLogs(program: Command, run: Run): void {
  program
    .command('logs')
    .summary('show what a detached process prints')
    .description(
      'Prints what a process that `box exec -d` started has written, byte for byte: its stdout on stdout, its stderr on ' +
        'stderr. With -f it goes on to the end of the process, whatever breaks in between.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<id>', 'as `box exec -d` printed it and `box ps` shows it')
    .option('-f, --follow', 'follow it to its end, and exit as it did')
    .option('--tail <bytes>', 'of each stream only the last so many bytes to begin with', wholeNumber)
    .option('--json', 'an object a line for each piece of output, its bytes in base64')
    .addHelpText(
      'after',
      `
Examples:
  box logs fig p_0123456789abcdef01234567
  box logs -f fig $(box exec -d fig -- make world)
  box logs -f --tail 0 fig $ID               from now on
  box logs fig $ID 2>/dev/null | sha256sum

-f comes back by itself when the connection, the box's tunnel or the coordinator breaks off, with no byte lost or twice;
stderr says so when that takes long. When the box no longer keeps the beginning, stderr says how much is missing.
Ctrl-C ends only the following: the process goes on.

Exit codes with -f:
  the command's own, or 128 + n when signal n ended it
  125  nobody knows how it ended (it is lost), or box logs itself failed
  130  Ctrl-C`,
    )
    .action((name: string, id: string, options: Options) =>
      run((session) => orNone(logs(session, name, id, options), noProcess(name, id))),
    )
}

async function logs(session: Session, name: string, id: string, options: Options): Promise<number> {
  // Of no use to the other commands, each start of which would take longer.
  const { outputSize, readOutput } = await import('../follow/output.ts')
  const { signal } = session
  const { json = false, follow = false, tail } = options
  const source = {
    edge: await session.client.edge(name),
    processId: id,
    signal,
    onLong: (why: string) =>
      say(`box: no connection to the process. ${why} Trying until it is back, or Ctrl-C.`),
    onAgain: () => say('box: connected again; it goes on where it was.'),
  }
  const size = !follow || tail !== undefined ? await outputSize(source) : null
  const words = lostWords(name, say)
  const onInterrupt = () => say(`box: the process goes on. To come back: box logs -f ${name} ${id}`)
  try {
    const exit = await readOutput({
      ...source,
      from: size !== null && tail !== undefined ? lastOf(size, tail) : { stdout: 0, stderr: 0 },
      ...(!follow && size !== null && { until: size }),
      onAttached: () => signal.addEventListener('abort', onInterrupt),
      onChunk: (chunk) => passOn(chunk, json, signal),
      onLost: words.lost,
    })
    if (json && exit !== null)
      await write(process.stdout, `${JSON.stringify({ event: 'exit', ...exit })}\n`, signal)
    return follow && exit !== null ? exitOf(exit) : EXIT.ok
  } finally {
    words.end()
    signal.removeEventListener('abort', onInterrupt)
  }
}

const lastOf = ({ stdout, stderr }: Offsets, tail: number): Offsets => ({
  stdout: Math.max(0, stdout - tail),
  stderr: Math.max(0, stderr - tail),
})

function passOn({ stream, bytes, offset }: Chunk, json: boolean, signal: AbortSignal): Promise<void> {
  if (!json) return write(process[stream], bytes, signal)
  const data = bytes.toString('base64')
  const event = { event: stream, data, offset, nextOffset: offset + bytes.length }
  return write(process.stdout, `${JSON.stringify(event)}\n`, signal)
}

function exitOf({ status, exitCode, signal }: Exit): number {
  if (status !== 'lost') return commandExit(exitCode, signal)
  const why = 'its box stopped or restarted, or what watched over it was killed'
  throw new Failure(EXIT.lost, `The process is lost: how it ended is not known (${why}).`)
}
