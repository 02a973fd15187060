// box exec -it: runs a command in a terminal session of its own.
import type { ExecRequest } from '../../shared/api/exec.ts'
import type { Session } from '../connection/session.ts'
import { CliError, type CommandResult, EXIT } from '../output/exit-codes.ts'
import { createSession, requireTerminal } from '../terminal/create-session.ts'
import type { ExecOptions } from './request.ts'

/** @throws CliError when -t is combined with other options that exclude it, or stdin is not a terminal */
export function checkTerminalOptions({ detach, json, stdin, timeout, disconnectTimeout }: ExecOptions): void {
  if (detach || json || !stdin || timeout !== undefined || disconnectTimeout !== undefined)
    throw new CliError(
      EXIT.usage,
      '-t cannot be combined with -d, -n, --json, --timeout or --disconnect-timeout.',
    )
  requireTerminal('Use -i without -t.')
}

export async function runInTerminal(
  session: Session,
  name: string,
  { command, cwd, env }: ExecRequest,
): Promise<CommandResult> {
  const edge = await session.client.createEdgeClient(name)
  const options = { ...(cwd !== undefined && { cwd }), ...(env !== undefined && { env }) }
  const created = await createSession(edge, { command, ...options })
  const { runTerminal } = await import('../terminal/run-terminal.ts')
  return runTerminal(session, edge, { session: created.session, start: { stdout: 0, stderr: 0 } })
}
