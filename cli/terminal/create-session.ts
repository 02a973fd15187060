// Creates a terminal session on a box, or finds the session of a name.

import type { TerminalList, TerminalStart, TerminalStarted } from '../../shared/api/terminal.ts'
import type { EdgeClient } from '../connection/client.ts'
import { CliError, EXIT } from '../output/exit-codes.ts'
import { replaceStartErrors } from '../processes/process-messages.ts'
import { getTerm, getTerminalSize } from './local-terminal.ts'

export type NewSession = Pick<TerminalStart, 'session' | 'command' | 'cwd' | 'env'>

/** Throws CliError, also when a session of this name exists. */
export function createSession(edge: EdgeClient, options: NewSession): Promise<TerminalStarted> {
  const term = getTerm()
  const body: TerminalStart = { ...options, ...getTerminalSize(), ...(term !== undefined && { term }) }
  return replaceStartErrors(
    edge.requestJson<TerminalStarted>('POST', '/terminal/sessions', body),
    edge.boxName,
    options.cwd,
  )
}

/** Returns null when a session of this name exists. */
export async function createSessionUnlessExists(
  edge: EdgeClient,
  options: NewSession & { session: string },
): Promise<TerminalStarted | null> {
  try {
    return await createSession(edge, options)
  } catch (error) {
    if (!(error instanceof CliError) || error.code !== 'invalid_request') throw error
    const { sessions } = await listSessions(edge)
    if (sessions.some(({ session }) => session === options.session)) return null
    throw error
  }
}

export const listSessions = (edge: EdgeClient): Promise<TerminalList> =>
  edge.requestJson<TerminalList>('GET', '/terminal/sessions')

/** @throws CliError when stdin is not a terminal @param instead what to use without a terminal */
export function requireTerminal(instead: string): void {
  if (!process.stdin.isTTY) throw new CliError(EXIT.usage, `stdin is not a terminal. ${instead}`)
}
