// box exec: runs a command on a box and ends as it ended, or starts one that goes on by itself.
import type { Command } from 'commander'
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import type { ExecStarted } from '../../shared/api/processes.ts'
import { commandExit, EXIT, Failure } from '../exit-codes.ts'
import { type JsonOption, jsonOption, positiveNumber, variable } from '../options.ts'
import { commandLine, print, printJson, quote, quoteLine, say } from '../output.ts'
import type { Run, Session } from '../session.ts'

type Options = JsonOption & {
  detach?: boolean
  cwd?: string
  env?: Record<string, string>
  timeout?: number
}

export function addExec(program: Command, run: Run): void {
  program
    .command('exec')
    .summary('run a command on a box')
    .description(
      'Runs a command on a box, as the box user, and passes on its output and its exit code. A suspended box is woken. ' +
        'The command gets no stdin. With -d it goes on by itself, and its id is printed.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<command...>', 'one argument is a line for sh; several are words, each kept whole')
    .usage('[options] <name> -- <command...>')
    .option('-d, --detach', 'start it and leave it running')
    .option('--cwd <folder>', 'where it runs: absolute, or under the home directory, the default')
    .option('--env <K=V>', 'a variable for it; may be repeated', variable)
    .option(
      '--timeout <seconds>',
      'end it after this time, 1 to 600 (default 30; with -d none)',
      positiveNumber,
    )
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
  ID=$(box exec -d fig -- make world) && box logs -f fig $ID

The last 1 MiB of stdout and of stderr is kept; when there was more, stderr says so. A detached command keeps more, and
outlives this command, the connection and the coordinator: see box logs, ps and kill.

Exit codes:
  the command's own, or 128 + n when signal n ended it; with -d 0 once it is started
  124  the time limit ended it (stderr says so)
  125  box exec itself failed: wrong usage, no such box, coordinator or box not reached
  126  127  by the shell on the box: not executable, not found
  130  Ctrl-C; the command on the box is ended too, unless it is detached`,
    )
    .action((name: string, words: string[], options: Options) =>
      run((session) => (options.detach ? start : execute)(session, name, requestOf(words, options), options)),
    )
}

const requestOf = (words: string[], { cwd, env, timeout }: Options): ExecRequest => ({
  command: commandLine(words),
  ...(cwd !== undefined && { cwd }),
  ...(env !== undefined && { env }),
  ...(timeout !== undefined && { timeoutSeconds: timeout }),
})

async function start(
  session: Session,
  name: string,
  request: ExecRequest,
  { json }: Options,
): Promise<number> {
  const edge = await session.client.edge(name)
  const maybe = `It may have been started all the same: \`box ps ${name}\` shows it.`
  const started = await whileSaying(session, `box: interrupted. ${maybe}`, () =>
    edge.json<ExecStarted>('POST', '/exec', { ...request, detached: true }),
  ).catch((error) => {
    if (!(error instanceof Failure) || error.exitCode !== EXIT.unreachable) throw error
    throw new Failure(error.exitCode, `${error.message} ${maybe}`, { cause: error })
  })
  const { processId } = started
  if (json) printJson(started)
  else print(processId)
  if (!json && process.stdout.isTTY)
    say(`Follow it: box logs -f ${name} ${processId}\nEnd it:    box kill ${name} ${processId}`)
  return EXIT.ok
}

async function execute(
  session: Session,
  name: string,
  request: ExecRequest,
  { json, timeout }: Options,
): Promise<number> {
  const edge = await session.client.edge(name)
  const result = await whileSaying(session, interruptedNote(name, request), () =>
    edge.json<ExecResult>('POST', '/exec', request),
  )
  if (json) printJson(result)
  else passOn(result)
  if (result.timedOut) {
    const more = '--timeout gives it up to 600, -d as long as it takes.'
    say(`box: the time limit of ${timeout ?? 30} s ended the command. ${more}`)
    return EXIT.timedOut
  }
  return commandExit(result.exitCode, result.signal)
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

/** Says `note` when the signal is raised in the meantime. */
async function whileSaying<T>({ signal }: Session, note: string, action: () => Promise<T>): Promise<T> {
  const onInterrupt = () => say(note)
  signal.addEventListener('abort', onInterrupt)
  try {
    return await action()
  } finally {
    signal.removeEventListener('abort', onInterrupt)
  }
}

/** Values of variables are often secrets, and stay out of the terminal: K alone takes the one it has here. */
function interruptedNote(name: string, { command, cwd, env = {}, timeoutSeconds }: ExecRequest): string {
  const options = [
    ...(cwd === undefined ? [] : ['--cwd', quote(cwd)]),
    ...Object.keys(env).flatMap((key) => ['--env', key]),
    ...(timeoutSeconds === undefined ? [] : ['--timeout', String(timeoutSeconds)]),
  ]
  const line = ['box exec -d', ...options, name, '--', quoteLine(command)].join(' ')
  return `box: interrupted; the command on ${name} was ended with the request. One that goes on without you:\n  ${line}`
}
