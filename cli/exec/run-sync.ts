// box exec --json: runs a synchronous command and prints the result when it has exited.
import type { ExecRequest, ExecResult } from '../../shared/api/exec.ts'
import { LIMITS } from '../../shared/limits.ts'
import type { Session } from '../connection/session.ts'
import { CliError, type CommandResult, commandExitCode, EXIT } from '../output/exit-codes.ts'
import { printJson } from '../output/print.ts'
import { printError } from '../output/print-error.ts'
import { formatTimedOut, replaceStartErrors } from '../processes/process-messages.ts'
import { printIfInterrupted } from './request.ts'

export async function runSync(session: Session, name: string, request: ExecRequest): Promise<CommandResult> {
  const edge = await session.client.createEdgeClient(name)
  const message = `interrupted; the command on ${name} was killed. Its output: \`box history ${name}\`, \`box output ${name} ID\`.`
  const result = await printIfInterrupted(session, message, () =>
    replaceStartErrors(edge.requestJson<ExecResult>('POST', '/exec', request), name, request.cwd),
  )
  printJson(result)
  if (!result.timedOut) return { exitCode: commandExitCode(result.exitCode, result.signal), continues: false }
  const seconds = request.timeoutSeconds ?? LIMITS.execTimeoutSeconds.default
  const timedOut = formatTimedOut(seconds, 'Use --timeout (up to 600), or run it without --json.')
  printError(new CliError(EXIT.timedOut, timedOut, { code: 'timed_out' }))
  return { exitCode: EXIT.timedOut, continues: false }
}
