// box exec: runs a command on a box and exits with its code, or starts a detached process.
import type { Command } from 'commander'
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import type { ExecStarted } from '../../shared/api/processes.ts'
import { LIMITS } from '../../shared/limits.ts'
import { CliError, commandExitCode, EXIT } from '../exit-codes.ts'
import { createJsonOption, createNumberParser, type JsonOption, parseEnvOption } from '../options.ts'
import {
  print,
  printJson,
  printMessage,
  printStderr,
  sanitize,
  shellQuote,
  shellQuoteAlways,
  toCommandLine,
} from '../output.ts'
import { replaceNotFoundMessage } from '../process-messages.ts'
import type { RunAction, Session } from '../session.ts'

type Options = JsonOption & {
  detach?: boolean
  cwd?: string
  env?: Record<string, string>
  timeout?: number
}

export function addExecCommand(program: Command, runAction: RunAction): void {
  program
    .command('exec')
    .summary('run a command on a box')
    .description(
      'Runs a command on a box as the box user, prints its output when it has exited, and exits with its code. Wakes a ' +
        'suspended box. The command gets no stdin and no terminal. With -d the command runs in the background and its ' +
        'id is printed.',
    )
    .argument('<name>', "the box's name or id")
    .argument('<command...>', 'one argument: a shell command line; several: each is quoted for the shell')
    .usage('[options] <name> -- <command...>')
    .option('-d, --detach', 'run the command in the background')
    .option('--cwd <directory>', 'working directory: absolute, or relative to the home directory (default)')
    .option('--env <K=V>', 'set an environment variable; can be repeated', parseEnvOption)
    .option(
      '--timeout <seconds>',
      'kill the command after this time, 1 to 600 (default: 30; with -d: none)',
      createNumberParser('--timeout', LIMITS.execTimeoutSeconds),
    )
    .addOption(createJsonOption())
    .addHelpText(
      'after',
      `
Examples:
  box exec fig -- make test
  box exec fig -- 'cd src && ls *.c | wc -l'          one argument: a shell command line
  box exec fig -- printf '%s\\n' 'two words'           several arguments: no expansion on the box
  box exec fig --cwd src --env CC=clang --timeout 600 -- make
  box exec fig --json -- date | jq -r .stdout
  ID=$(box exec -d fig -- make world) && box logs -f fig $ID

Only the last 1 MiB of stdout and of stderr is printed; stderr reports if there was more. For a detached command the box
stores more output, and the command survives a lost connection and a coordinator restart: see box logs, ps and kill.

Exit codes:
  the command's own, or 128 + n if signal n killed it; with -d 0 once it has started
  124  the command timed out (reported on stderr)
  125  box exec itself failed: wrong usage, no such box, coordinator or box unreachable
  126  127  from the shell on the box: not executable, not found
  130  Ctrl-C; it also kills the command on the box, unless detached`,
    )
    .action((name: string, args: string[], options: Options) =>
      runAction((session) =>
        (options.detach ? startDetached : runSync)(session, name, toExecRequest(args, options), options),
      ),
    )
}

const toExecRequest = (args: string[], { cwd, env, timeout }: Options): ExecRequest => ({
  command: toCommandLine(args),
  ...(cwd !== undefined && { cwd }),
  ...(env !== undefined && { env }),
  ...(timeout !== undefined && { timeoutSeconds: timeout }),
})

/** For POST /exec, not_found means that the working directory does not exist on the box. */
const replaceCwdError = <T>(response: Promise<T>, name: string, { cwd = '~' }: ExecRequest): Promise<T> =>
  replaceNotFoundMessage(
    response,
    `No such directory on ${name}: '${sanitize(cwd)}'. Set another directory with --cwd.`,
  )

async function startDetached(
  session: Session,
  name: string,
  request: ExecRequest,
  { json }: Options,
): Promise<number> {
  const edge = await session.client.createEdgeClient(name)
  const uncertainStart = `The command may have started anyway: check with \`box ps ${name}\`.`
  const started = await printIfInterrupted(session, `interrupted. ${uncertainStart}`, () =>
    replaceCwdError(
      edge.requestJson<ExecStarted>('POST', '/exec', { ...request, detached: true }),
      name,
      request,
    ),
  ).catch((error) => {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.unreachable) throw error
    throw new CliError(error.exitCode, `${error.message} ${uncertainStart}`, { cause: error })
  })
  const { processId } = started
  if (json) printJson(started)
  else print(processId)
  if (!json && process.stdout.isTTY)
    printStderr(`Follow it: box logs -f ${name} ${processId}\nKill it:   box kill ${name} ${processId}`)
  return EXIT.ok
}

async function runSync(
  session: Session,
  name: string,
  request: ExecRequest,
  { json, timeout = LIMITS.execTimeoutSeconds.default }: Options,
): Promise<number> {
  const edge = await session.client.createEdgeClient(name)
  const result = await printIfInterrupted(session, formatInterruptedMessage(name, request), () =>
    replaceCwdError(edge.requestJson<ExecResult>('POST', '/exec', request), name, request),
  )
  if (json) printJson(result)
  else printOutput(result)
  if (result.timedOut) {
    printMessage(
      `the command timed out after ${timeout} s. Use --timeout (up to 600), or run it detached with -d.`,
    )
    return EXIT.timedOut
  }
  return commandExitCode(result.exitCode, result.signal)
}

function printOutput(result: ExecResult): void {
  process.stdout.write(result.stdout)
  process.stderr.write(result.stderr)
  const truncated = [result.stdoutTruncated && 'stdout', result.stderrTruncated && 'stderr'].filter(Boolean)
  if (truncated.length > 0)
    printMessage(
      `only the last 1 MiB of ${truncated.join(' and ')} is shown. ` +
        'To get all of it, redirect it to a file on the box and copy that with `box cp`.',
    )
}

/** Prints `message` if the signal is aborted while `action` runs. */
async function printIfInterrupted<T>(
  { signal }: Session,
  message: string,
  action: () => Promise<T>,
): Promise<T> {
  const onAbort = () => printMessage(message)
  signal.addEventListener('abort', onAbort)
  try {
    return await action()
  } finally {
    signal.removeEventListener('abort', onAbort)
  }
}

/** Prints only the names of variables, because their values are often secrets: `--env NAME` reads the value here. */
function formatInterruptedMessage(
  name: string,
  { command, cwd, env = {}, timeoutSeconds }: ExecRequest,
): string {
  const options = [
    ...(cwd === undefined ? [] : ['--cwd', shellQuote(cwd)]),
    ...Object.keys(env).flatMap((key) => ['--env', key]),
    ...(timeoutSeconds === undefined ? [] : ['--timeout', String(timeoutSeconds)]),
  ]
  return [
    `interrupted; the command on ${name} was killed. Its output: \`box history ${name}\`, \`box output ${name} ID\`.`,
    'To keep a command running after you disconnect:',
    `  ${['box exec -d', ...options, name, '--', shellQuoteAlways(command)].join(' ')}`,
  ].join('\n')
}
