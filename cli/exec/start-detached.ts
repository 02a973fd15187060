// box exec -d: starts a detached command and prints its id.
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { ExecStarted } from '../../shared/api/processes.ts'
import type { JsonOption } from '../arguments/options.ts'
import type { Session } from '../connection/session.ts'
import { CliError, type CommandResult, EXIT } from '../output/exit-codes.ts'
import { print, printJson, printStderr } from '../output/print.ts'
import { formatDetachedHint, replaceStartErrors } from '../processes/process-messages.ts'
import { printIfInterrupted } from './request.ts'

export async function startDetached(
  session: Session,
  name: string,
  request: ExecRequest,
  { json }: JsonOption,
): Promise<CommandResult> {
  const edge = await session.client.createEdgeClient(name)
  const uncertainStart = `The command may have started anyway: check with \`box ps ${name}\`.`
  const started = await printIfInterrupted(session, `interrupted. ${uncertainStart}`, () =>
    replaceStartErrors(
      edge.requestJson<ExecStarted>('POST', '/exec', { ...request, detached: true }),
      name,
      request.cwd,
    ),
  ).catch((error) => {
    if (!(error instanceof CliError) || error.exitCode !== EXIT.unreachable) throw error
    throw new CliError(error.exitCode, `${error.message} ${uncertainStart}`, { cause: error })
  })
  const { processId } = started
  if (json) printJson(started)
  else print(processId)
  if (!json && process.stdout.isTTY) printStderr(formatDetachedHint(name, processId))
  return { exitCode: EXIT.ok, continues: true }
}
