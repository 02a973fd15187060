// box exec: runs a command on a box and ends as it ended.
import { constants } from 'node:os'
import type { Command } from 'commander'
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { EXIT, signalExit } from '../exit-codes.ts'
import { type JsonOption, jsonOption, positiveNumber, variable } from '../options.ts'
import { commandLine, printJson, say } from '../output.ts'
import type { Run, Session } from '../session.ts'

type Options = JsonOption & { cwd?: string; env?: Record<string, string>; timeout?: number }

export function addExec(program: Command, run: Run): void {
  program
    .command('exec')
    .summary('run a command on a box')
    .description(
      'Runs a command on a box, as the box user, and passes on its output and its exit code. A suspended box is woken. ' +
        'The command gets no stdin.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<command...>', 'one argument is a line for sh; several are words, each kept whole')
    .usage('[options] <name> -- <command...>')
    .option('--cwd <folder>', 'where it runs: absolute, or under the home directory, the default')
    .option('--env <K=V>', 'a variable for it; may be repeated', variable)
    .option('--timeout <seconds>', 'end it after this time, 1 to 600 (default 30)', positiveNumber)
    .addOption(jsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box exec fig -- make test
  box exec fig -- 'cd src && ls *.c | wc -l'          one argument: a line for the shell
  box exec fig -- printf '%s\\n' 'two words'           several: nothing is expanded on the box
  box exec fig --cwd src --env CC=clang --timeout 600 -- make
  box exec fig --json -- date | jq -r .stdout

The last 1 MiB of stdout and of stderr is kept; when there was more, stderr says so.

Exit codes:
  the command's own, or 128 + n when signal n ended it
  124  the time limit ended it (stderr says so)
  125  box exec itself failed: wrong usage, no such box, coordinator or box not reached
  126  127  by the shell on the box: not executable, not found
  130  Ctrl-C; the command on the box is ended too`,
    )
    .action((name: string, words: string[], options: Options) =>
      run((session) => execute(session, name, words, options)),
    )
}

async function execute(session: Session, name: string, words: string[], options: Options): Promise<number> {
  const { cwd, env, timeout, json } = options
  const request: ExecRequest = {
    command: commandLine(words),
    ...(cwd !== undefined && { cwd }),
    ...(env !== undefined && { env }),
    ...(timeout !== undefined && { timeoutSeconds: timeout }),
  }
  const edge = await session.client.edge(name)
  const onInterrupt = () => say(interruptedNote(name, request.command))
  session.signal.addEventListener('abort', onInterrupt)
  const result = await edge.json<ExecResult>('POST', '/exec', request)
  session.signal.removeEventListener('abort', onInterrupt)
  if (json) printJson(result)
  else passOn(result)
  if (result.timedOut) {
    say(`box: the time limit of ${timeout ?? 30} s ended the command. --timeout gives it up to 600.`)
    return EXIT.timedOut
  }
  return exitCodeOf(result)
}

function passOn(result: ExecResult): void {
  process.stdout.write(result.stdout)
  process.stderr.write(result.stderr)
  const cut = [result.stdoutTruncated && 'stdout', result.stderrTruncated && 'stderr'].filter(Boolean)
  if (cut.length > 0) {
    const todo = 'Send it to a file on the box and `box cp` that.'
    say(`box: only the last 1 MiB of ${cut.join(' and ')} was kept. ${todo}`)
  }
}

function exitCodeOf({ exitCode, signal }: ExecResult): number {
  if (exitCode !== null) return exitCode
  const number = constants.signals[`SIG${signal}` as NodeJS.Signals]
  return number === undefined ? EXIT.execFailed : signalExit(number)
}

const interruptedNote = (name: string, command: string): string =>
  `box: interrupted; the command on ${name} is ended too. One that should go on without you:\n` +
  `  box exec ${name} -- ${quoteLine(`nohup sh -c ${quoteLine(command)} >out.log 2>&1 &`)}`

const quoteLine = (line: string): string => `'${line.replaceAll("'", `'\\''`)}'`
